// One step of the model over a batch: any mix of prefill chunks and decode tokens, each sequence
// with its pages. Nothing above knows the backend.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/layer_probe.h"
#include "engine/options.h"
#include "engine/sampler.h"

namespace gauntlet::engine {

/// What is wanted of a sequence's tokens in this step; each includes the one before.
enum class Want {
  nothing,          // a chunk of a prompt that goes on
  token,            // sample one after the last
  log_probability,  // of that token
  logits,           // all of them after the last
};

struct BatchItem {
  SequenceId sequence = 0;
  std::vector<std::int32_t>
      tokens;  // at positions length(sequence) onward; reserved, not committed
  Want want = Want::token;
  SamplingParams sampling;
  std::vector<std::uint32_t> allowed;  // a bit per token id; empty: all
  std::vector<std::int32_t> targets;   // empty, or one per token: its log-probability is returned
};

struct ItemResult {
  std::int32_t token = -1;
  float log_probability = 0;             // of that token, before temperature; where wanted
  std::vector<float> logits;             // [vocab] where wanted
  std::vector<double> target_log_probs;  // one per target
};

using Ticket = std::int64_t;

/// Bytes the weights of one step must bring in, for a limit: dense ones once, experts by use.
struct StepTraffic {
  std::int64_t dense_bytes = 0;
  std::int64_t expert_bytes = 0;  // of those experts that some token chose
  std::int64_t kv_bytes = 0;
  std::int64_t active_experts = 0;  // those, over all layers
  std::int64_t exact_logits = 0;    // on CPUs: all, or those that a screened head had to compute
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual const model::ModelConfig& config() const = 0;
  virtual const Plan& plan() const = 0;
  virtual KvPool& kv() = 0;
  /// Tokens one submit may carry.
  virtual std::int64_t max_batch_tokens() const = 0;

  /// Takes a step; its items' pages must be reserved. collect() returns one result per item, in
  /// order, and commits the positions.
  virtual Ticket submit(std::vector<BatchItem> items) = 0;
  virtual std::vector<ItemResult> collect(Ticket ticket) = 0;

  /// Steps submitted from now on are watched; null: no more.
  virtual void watch(LayerProbe* probe) = 0;

  virtual StepTraffic last_traffic() const = 0;
  /// Tokens that each expert got since the executor was made, [layers, experts]. Between steps.
  /// Empty where they are not counted.
  virtual std::span<const std::int64_t> expert_tokens() const { return {}; }
  virtual std::int64_t weight_bytes() const = 0;
};

}  // namespace gauntlet::engine
