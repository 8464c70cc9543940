// Are windows cut, begun and summed as promised?
#include "engine/measure/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "engine/steps/fake_executor.h"

namespace gauntlet::engine::inline measure {
namespace {

using Ids = std::vector<std::int32_t>;
using testing::HasSubstr;

model::ModelConfig small_config() {
  return {.name = "fake", .vocab = 1000, .max_positions = 64, .bos_id = 7};
}

TEST(Score, is_the_perplexity_of_whole_windows_with_bos_before_each) {
  FakeExecutor executor(small_config(), 4);
  Ids text(26);
  std::iota(text.begin(), text.end(), 8);  // the fake foretells the next number, so 8 after BOS 7
  const auto score = score_tokens(executor, text, {.window = 10});
  ASSERT_TRUE(score);
  EXPECT_EQ(score->tokens, 20);
  // Every token is the likely one but the first of the second window.
  const double sum = 19 * std::log(2.0 / 3) + std::log(1.0 / 3 / 999);
  EXPECT_NEAR(score->mean_log_probability, sum / 20, 1e-12);
  EXPECT_NEAR(score->perplexity, std::exp(-sum / 20), 1e-9);
  ASSERT_EQ(executor.steps.size(), 6u) << "windows of 4 + 4 + 2";
  EXPECT_EQ(executor.steps[0].items[0].tokens, (Ids{7, 8, 9, 10}));
  EXPECT_EQ(executor.steps[0].items[0].targets, (Ids{8, 9, 10, 11}));
  EXPECT_EQ(executor.steps[3].items[0].tokens, (Ids{7, 18, 19, 20}));
  EXPECT_EQ(executor.kv().num_sequences(), 0);
}

TEST(Score, refuses_windows_that_do_not_fit) {
  FakeExecutor executor(small_config(), 4);
  const Ids text(30, 1);
  const auto refusal = [&](std::int64_t window) {
    return score_tokens(executor, text, {.window = window}).error().message;
  };
  EXPECT_THAT(refusal(0), HasSubstr("give 1 to 64"));
  EXPECT_THAT(refusal(65), HasSubstr("give 1 to 64"));
  EXPECT_THAT(refusal(31), HasSubstr("the text has 30 tokens"));
  FakeExecutor small(small_config(), 4, /*pages=*/2);
  EXPECT_THAT(score_tokens(small, text, {.window = 30}).error().message, HasSubstr("KV cache"));
  EXPECT_EQ(small.kv().num_sequences(), 0);
}

}  // namespace
}  // namespace gauntlet::engine::inline measure
