// Is what bench times what it says: so many tokens, at such a context, in such steps?
#include "engine/measure/speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/steps/fake_executor.h"

namespace gauntlet::engine::inline measure {
namespace {

using testing::HasSubstr;

model::ModelConfig small_config() {
  return {.name = "fake",
          .num_layers = 2,
          .hidden = 8,
          .intermediate = 16,
          .num_heads = 2,
          .num_kv_heads = 1,
          .head_dim = 4,
          .num_experts = 4,
          .experts_per_token = 2,
          .vocab = 100,
          .max_positions = 64,
          .sliding_window = 8,
          .attention = {model::AttentionSpan::sliding, model::AttentionSpan::full}};
}

struct Speed : testing::Test {
  FakeExecutor executor{small_config(), 16};
  std::vector<std::size_t> step_sizes() const {
    std::vector<std::size_t> sizes;
    for (const auto& step : executor.steps) {
      std::size_t tokens = 0;
      for (const auto& item : step.items) tokens += item.tokens.size();
      sizes.push_back(tokens);
    }
    return sizes;
  }
};

TEST_F(Speed, fills_steps_with_the_prompts_of_a_batch) {
  SpeedMeter meter(executor);
  ASSERT_TRUE(meter.prepare({.kind = SpeedKind::prefill, .batch = 3, .tokens = 12}, {}));
  EXPECT_TRUE(executor.steps.empty()) << "an empty context costs nothing";
  const auto sample = meter.measure();
  ASSERT_TRUE(sample);
  EXPECT_GT(sample->seconds, 0);
  EXPECT_EQ(step_sizes(), (std::vector<std::size_t>{16, 16, 4}));
  EXPECT_DOUBLE_EQ(sample->bytes, 3 * 1110);
  EXPECT_EQ(executor.steps[0].items[0].want, Want::token);
  EXPECT_EQ(executor.steps[0].items[1].want, Want::nothing);
}

TEST_F(Speed, decodes_all_sequences_together_from_a_context_that_is_filled_once) {
  SpeedMeter meter(executor);
  const SpeedTest test{.kind = SpeedKind::decode, .batch = 1, .context = 20, .tokens = 5};
  ASSERT_TRUE(meter.prepare(test, {}));
  EXPECT_EQ(step_sizes(), (std::vector<std::size_t>{16, 4}));
  executor.steps.clear();
  for (int repetition = 0; repetition < 2; ++repetition) ASSERT_TRUE(meter.measure());
  EXPECT_EQ(step_sizes(), std::vector<std::size_t>(10, 1u));
  EXPECT_EQ(executor.kv().num_sequences(), 1) << "forks go back, the context stays";
  EXPECT_EQ(executor.kv().check_integrity(), "");
}

TEST_F(Speed, refuses_what_does_not_fit) {
  SpeedMeter meter(executor);
  EXPECT_THAT(meter.prepare({.context = 60, .tokens = 5}, {}).error().message,
              HasSubstr("has 64 positions"));
  EXPECT_THAT(meter.prepare({.batch = 17, .tokens = 1}, {}).error().message,
              HasSubstr("a batch of 17"));
}

TEST(SpeedWork, counts_each_product_once) {
  const SpeedWork work =
      work_of({.kind = SpeedKind::decode, .batch = 2, .context = 10, .tokens = 1}, small_config());
  // q and o 8x8 each, k and v 4x8 each, router 4x8; lm_head 100x8.
  EXPECT_DOUBLE_EQ(work.dense_flops, 2 * (2 * 2 * (64 + 64 + 32 + 32 + 32)));
  EXPECT_DOUBLE_EQ(work.head_flops, 2 * (2 * 800));
  EXPECT_DOUBLE_EQ(work.expert_flops, 2 * 2 * 2 * (3 * 8 * 16 * 2));
  // Eight positions in the sliding layer, eleven in the full one; keys and values; width 8.
  EXPECT_DOUBLE_EQ(work.attention_flops, 2 * 4 * 8 * (8 + 11));
  const SpeedWork prompt = work_of({.kind = SpeedKind::prefill, .tokens = 2}, small_config());
  EXPECT_DOUBLE_EQ(prompt.dense_flops, 2 * 2 * 2 * 224);
  EXPECT_DOUBLE_EQ(prompt.head_flops, 2 * 800) << "one set of logits";
}

TEST(SpeedLimit, is_the_longer_of_reading_and_computing) {
  const SpeedWork work{.dense_flops = 100, .expert_flops = 50, .attention_flops = 10};
  const MachineRates rates{.read_bytes_per_s = 10, .f32_flops_per_s = 10, .int8_flops_per_s = 50};
  Plan plan;
  EXPECT_DOUBLE_EQ(limit_of(work, 20, plan, rates).seconds, 16);
  EXPECT_EQ(limit_of(work, 20, plan, rates).bound_by, "compute");
  plan.experts = kernels::cpu::Precision::int8;
  EXPECT_DOUBLE_EQ(limit_of(work, 20, plan, rates).seconds, 12);
  EXPECT_EQ(limit_of(work, 200, plan, rates).bound_by, "memory");
  const SpeedWork with_head{.dense_flops = 100, .head_flops = 50, .head_rows = 4};
  EXPECT_DOUBLE_EQ(limit_of(with_head, 20, plan, rates).seconds, 15);
  plan.head = HeadKind::screened;
  EXPECT_DOUBLE_EQ(limit_of(with_head, 20, plan, rates).seconds, 12) << "bytes, twice";
  plan.dense = kernels::cpu::Precision::bf16;
  EXPECT_EQ(limit_of(work, 20, plan, rates).bound_by, "") << "that rate is unknown";
}

}  // namespace
}  // namespace gauntlet::engine::inline measure
