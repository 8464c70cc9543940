// Who computes steps: a backend on this machine, or ranks of it elsewhere. A runner has weights and
// the bytes of the KV pages; which page is whose it is told step by step.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/options.h"
#include "engine/steps/device_seam.h"
#include "engine/steps/layer_probe.h"
#include "engine/steps/step_data.h"

namespace gauntlet::engine::inline steps {

using Ticket = std::int64_t;

/// Bytes the weights of one step must bring in, for a limit: dense ones once, experts by use.
struct StepTraffic {
  std::int64_t dense_bytes = 0;
  std::int64_t expert_bytes = 0;  // of those experts that some token chose
  std::int64_t kv_bytes = 0;
  std::int64_t active_experts = 0;  // those, over all layers
  std::int64_t exact_logits = 0;    // on CPUs: all, or those that a screened head had to compute
};

class Runner {
 public:
  virtual ~Runner() = default;

  virtual const model::ModelConfig& config() const = 0;
  virtual const Plan& plan() const = 0;
  virtual StepLimits limits() const = 0;
  /// Steps that may have been started and not finished. Late tokens need two.
  virtual int most_in_flight() const = 0;

  /// Takes a step that check_step() lets pass. Throws, with nothing under way, when it cannot.
  virtual Ticket start(StepData step) = 0;
  /// One result per row, in order. Steps are finished in the order they were started.
  virtual std::vector<RowResult> finish(Ticket ticket) = 0;

  /// Steps started from now on are watched; null: no more. Nothing is in flight.
  virtual void watch(LayerProbe* probe) = 0;

  /// From now on each finished step adds for how long the device stood idle in front of it, since
  /// the end of the step before, by the device's own clock; null: no more. Nothing is in flight.
  /// Backends without such a clock add nothing.
  virtual void time_gaps(std::vector<double>* /*us*/) {}

  /// Of the step finished last.
  virtual StepTraffic last_traffic() const = 0;
  /// Of the step finished last, until the next is finished: the residuals of the tokens of those
  /// items that export, after each layer that does, [layers, tokens, hidden].
  virtual std::span<const float> last_residuals() const { return {}; }
  /// Whether these stayed on the device instead, until the next step is started.
  virtual bool last_residuals_stayed() const { return false; }
  /// What a draft head on the same device works with; null: it has none.
  virtual const DeviceSeam* device_seam() const { return nullptr; }
  /// Tokens that each expert got in the steps finished so far, [layers, experts]; empty where they
  /// are not counted.
  virtual std::span<const std::int64_t> expert_tokens() const { return {}; }
  virtual std::int64_t weight_bytes() const = 0;
};

}  // namespace gauntlet::engine::inline steps
