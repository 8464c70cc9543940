// Is a stack that says something else found out, and one that met a tie left alone?
#include "study/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/fake_executor.h"

namespace gauntlet::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GreedyRun run(std::vector<std::int32_t> tokens) {
  return {.tokens = {std::move(tokens)}, .margins = {{1.0, 0.5, 0.01, 2.0}}};
}

TEST(Agreements, count_tokens_up_to_the_first_near_tie) {
  const auto same = compare(run({1, 2, 3, 4}), run({1, 2, 9, 9}), 0.02);
  EXPECT_TRUE(same.agrees);
  EXPECT_EQ(same.compared, 2);
  EXPECT_EQ(same.of, 4);
}

TEST(Agreements, name_the_first_token_that_differs) {
  const auto other = compare(run({1, 2, 3, 4}), run({1, 7, 3, 4}), 0.02);
  EXPECT_FALSE(other.agrees);
  EXPECT_THAT(other.difference, HasSubstr("prompt 1, token 2: not the 2"));
}

TEST(Agreements, miss_what_was_not_generated) {
  EXPECT_FALSE(compare(run({1, 2, 3, 4}), {.tokens = {{1}}, .margins = {{1.0}}}, 0.02).agrees);
  EXPECT_FALSE(compare(run({1, 2, 3, 4}), {}, 0.02).agrees);
}

model::ModelConfig small() {
  return {.name = "fake", .num_layers = 1, .vocab = 100, .max_positions = 64, .sliding_window = 8};
}

TEST(GreedyRuns, are_the_same_alone_together_and_served) {
  const std::vector<std::vector<std::int32_t>> prompts = {{1, 2, 3}, {10}, {20, 21}};
  engine::FakeExecutor executor(small(), 16);
  const auto plain = greedy(executor, prompts, 3);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_THAT(plain->tokens,
              ElementsAre(ElementsAre(4, 5, 6), ElementsAre(11, 12, 13), ElementsAre(22, 23, 24)));
  EXPECT_NEAR(plain->margins[0][0], std::log(2.0 * 99), 1e-4);
  EXPECT_EQ(executor.kv().num_sequences(), 0);
  const auto served = served_greedy(executor, {}, prompts, 3);
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_EQ(served->tokens, plain->tokens);
  EXPECT_TRUE(compare(*plain, *served, 0.02).agrees);
}

TEST(GreedyRuns, refuse_logits_that_are_no_numbers) {
  engine::FakeExecutor executor(small(), 16);
  executor.next = [](const auto&) { return engine::kNoChoice; };
  const auto run = greedy(executor, {{1}}, 1);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("no choice"));
}

}  // namespace
}  // namespace gauntlet::study
