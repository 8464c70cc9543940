// How fast the engine is: prompts and single tokens at a batch and a context, beside the least time
// that the machine's own rates allow for the same work.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/steps/executor.h"

namespace gauntlet::engine::inline measure {

enum class SpeedKind { prefill, decode };
std::string_view name_of(SpeedKind kind);

struct SpeedTest {
  SpeedKind kind = SpeedKind::decode;
  std::int64_t batch = 1;    // sequences
  std::int64_t context = 0;  // positions each holds before
  std::int64_t tokens = 0;   // of each sequence

  std::int64_t all_tokens() const { return batch * tokens; }
  /// Positions of the KV cache that one repetition needs, page ends included.
  std::int64_t positions() const;
};

struct SpeedSample {
  double seconds = 0;
  double bytes = 0;  // that the weights and caches of all steps must bring in
  std::int64_t steps = 0;
  std::int64_t active_experts = 0;  // over all layers and steps: those that some token chose
};

class SpeedMeter {
 public:
  explicit SpeedMeter(Executor& executor);
  ~SpeedMeter();
  SpeedMeter(const SpeedMeter&) = delete;
  SpeedMeter& operator=(const SpeedMeter&) = delete;

  /// Fills the contexts that a test starts from; those of the test before are used again where
  /// they fit. `progress` gets the positions filled.
  Expected<void> prepare(const SpeedTest& test,
                         const std::function<void(std::int64_t done, std::int64_t all)>& progress);
  /// One repetition of the prepared test.
  Expected<SpeedSample> measure();

 private:
  using Sequences = std::vector<SequenceId>;

  /// Gives each sequence `tokens` random tokens, a step as full as it may be.
  Expected<void> fill(const Sequences& sequences, std::int64_t tokens,
                      const std::function<void(std::int64_t, std::int64_t)>& progress);
  Expected<void> decode(const Sequences& sequences, std::int64_t tokens);
  Expected<Ticket> submit(std::vector<BatchItem> items);
  void collect(Ticket ticket, std::vector<std::int32_t>* tokens);
  std::int32_t random_token();
  void free(Sequences& sequences);

  Executor& executor_;
  SpeedTest test_;
  SpeedSample sample_;  // of the repetition under way
  Sequences contexts_;  // each filled to test_.context; at least test_.batch of them
  std::uint64_t drawn_ = 0;
};

/// Floating-point operations of one repetition, by what computes them.
struct SpeedWork {
  double dense_flops = 0;      // attention's projections, router
  double head_flops = 0;       // of the output head, for every logit
  std::int64_t head_rows = 0;  // tokens of one step that it is computed for
  double expert_flops = 0;     // of the experts that each token chooses
  double attention_flops = 0;  // scores and weighted values
};
SpeedWork work_of(const SpeedTest& test, const model::ModelConfig& config);

/// What the machine was measured to do with these threads; 0: unknown.
struct MachineRates {
  double read_bytes_per_s = 0;
  double f32_flops_per_s = 0;
  double bf16_flops_per_s = 0;
  double int8_flops_per_s = 0;
};

struct SpeedLimit {
  double seconds = 0;    // 0: unknown
  std::string bound_by;  // "memory", "compute"
};
/// The larger of the time to read the bytes and the time to compute, each at its full rate.
SpeedLimit limit_of(const SpeedWork& work, double bytes, const Plan& plan,
                    const MachineRates& rates);

}  // namespace gauntlet::engine::inline measure
