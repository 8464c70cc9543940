// Does the executor count which experts its tokens chose, watched or not, fused or not?
#include <gtest/gtest.h>

#include "engine/serving/service.h"
#include "engine/steps/cpu_executor.h"
#include "engine/steps/fake_executor.h"
#include "engine/test_run.h"
#include "model/weights.h"

namespace gauntlet::engine::inline steps {
namespace {

using Counts = std::vector<std::int64_t>;

/// Counts for itself.
class Watcher final : public LayerProbe {
 public:
  explicit Watcher(const model::ModelConfig& config)
      : counts(static_cast<std::size_t>(config.num_layers * config.num_experts)),
        num_experts_(config.num_experts) {}
  void routed(std::int64_t layer, std::span<std::int32_t> chosen, std::span<float>) override {
    for (const std::int32_t expert : chosen) ++counts[layer * num_experts_ + expert];
  }
  void finished(std::int64_t, std::span<const float>) override {}

  Counts counts;

 private:
  const std::int64_t num_experts_;
};

/// A prompt in chunks and two single tokens, which small steps take another way.
void run(Executor& executor) {
  const SequenceId sequence = executor.kv().create();
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 45; ++i) ids.push_back(i * 83 % 4096);
  prefill(executor, sequence, ids, 20);
  for (const std::int32_t id : {5, 1234}) decode(executor, sequence, id);
  executor.kv().free(sequence);
}

TEST(ExpertTokens, are_those_that_a_probe_sees_in_every_way_of_computing) {
  const auto weights =
      model::load_model(std::string(GAUNTLET_SOURCE_DIR) + "/models/gauntlet-tiny").value();
  for (const Fusion fusion : {Fusion::fused, Fusion::op_by_op}) {
    const auto make = [&] {
      return std::move(
          make_cpu_executor(weights,
                            {.options = {.fusion = fusion}, .max_sequences = 1, .max_tokens = 64})
              .value());
    };
    const auto watched = make();
    Watcher watcher(weights.config);
    watched->watch(&watcher);
    run(*watched);
    const auto alone = make();
    run(*alone);
    const auto as_counts = [](const Executor& executor) {
      const auto counts = executor.expert_tokens();
      return Counts(counts.begin(), counts.end());
    };
    EXPECT_EQ(as_counts(*watched), watcher.counts);
    EXPECT_EQ(as_counts(*alone), watcher.counts);
  }
}

TEST(ExpertTokens, come_out_of_the_service_after_each_step) {
  const auto weights =
      model::load_model(std::string(GAUNTLET_SOURCE_DIR) + "/models/gauntlet-tiny").value();
  const auto executor =
      std::move(make_cpu_executor(weights, {.max_sequences = 1, .max_tokens = 64}).value());
  Service service(*executor, {});
  ASSERT_TRUE(service.submit({.prompt = {1, 2, 3}, .max_tokens = 1}, {}));
  while (service.step()) {
  }
  const Counts counts = service.expert_tokens();
  const model::ModelConfig& config = weights.config;
  ASSERT_EQ(std::ssize(counts), config.num_layers * config.num_experts);
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    std::int64_t sum = 0;
    for (std::int64_t e = 0; e < config.num_experts; ++e) {
      sum += counts[layer * config.num_experts + e];
    }
    EXPECT_EQ(sum, 3 * config.experts_per_token) << "layer " << layer;
  }
}

TEST(ExpertTokens, are_absent_where_nobody_counts) {
  FakeExecutor executor({.name = "fake", .vocab = 10, .max_positions = 20}, 8);
  Service service(executor, {});
  service.step();
  EXPECT_TRUE(service.expert_tokens().empty());
}

}  // namespace
}  // namespace gauntlet::engine::inline steps
