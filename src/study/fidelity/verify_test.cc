// Is a stack that says something else found out, and one that met a tie left alone?
#include "study/fidelity/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/fidelity/routed_fake.h"

namespace gauntlet::study::inline fidelity {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const GreedyRun kBefore{.tokens = {{1, 2, 3, 4}}, .margins = {{1.0, 0.5, 0.01, 2.0}}};

TEST(Agreements, count_tokens_up_to_the_first_near_tie) {
  const auto same = compare(kBefore, {{1, 2, 9, 9}}, 0.02);
  EXPECT_TRUE(same.agrees);
  EXPECT_EQ(same.compared, 2);
  EXPECT_EQ(same.of, 4);
}

TEST(Agreements, name_the_first_token_that_differs) {
  const auto other = compare(kBefore, {{1, 7, 3, 4}}, 0.02);
  EXPECT_FALSE(other.agrees);
  EXPECT_THAT(other.difference, HasSubstr("prompt 1, token 2: not the 2"));
}

TEST(Agreements, miss_what_was_not_generated) {
  EXPECT_FALSE(compare(kBefore, {{1}}, 0.02).agrees);
  EXPECT_FALSE(compare(kBefore, {}, 0.02).agrees);
}

TEST(Agreements, look_at_the_second_time_too) {
  EXPECT_EQ(compare(kBefore, {{1, 2}, {1, 2}}, 0.02).compared, 4);
  EXPECT_FALSE(compare(kBefore, {{1, 2}, {1, 3}}, 0.02).agrees);
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
  EXPECT_EQ(served->size(), 2 * prompts.size()) << "once more, out of the prefix cache";
  EXPECT_TRUE(compare(*plain, *served, 0.02).agrees);
}

TEST(GreedyRuns, refuse_logits_that_are_no_numbers) {
  engine::FakeExecutor executor(small(), 16);
  executor.next = [](const auto&) { return engine::kNoChoice; };
  const auto run = greedy(executor, {{1}}, 1);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("no choice"));
}

/// Two stacks and three prompts; the second stack is looked at twice.
struct SecondLooks : testing::Test {
  RoutedFake before{RoutedFake::small()}, after{RoutedFake::small()};
  const Texts prompts = {{1, 2, 3}, {10, 11}, {20, 21}};

  Replay look() {
    const GreedyRun expected = greedy(before, prompts, 4).value();
    const Texts own = greedy(after, prompts, 4).value().tokens;
    EXPECT_FALSE(compare(expected, own, 0.02).agrees);
    Recording recording = record(before, prompts, expected.tokens).value();
    return replay(after, recording, own, 0.02).value();
  }
};

TEST_F(SecondLooks, pass_a_stack_whose_router_was_undecided) {
  after.flips = [](const auto& text) { return text == std::vector<std::int32_t>{10, 11, 12}; };
  const Replay replay = look();
  EXPECT_EQ(replay.wrong, "");
  EXPECT_EQ(replay.compared, 12);
  EXPECT_EQ(replay.replaced, 1);
  EXPECT_EQ(replay.experts, 3 + 2 + 2 + 3 * 3);
  EXPECT_EQ(after.kv().num_sequences(), 0);
}

TEST_F(SecondLooks, find_what_is_wrong_beside_an_undecided_router) {
  after.flips = [](const auto& text) { return text == std::vector<std::int32_t>{10, 11, 12}; };
  after.breaks = [](const auto& text, bool) { return text == std::vector<std::int32_t>{20, 21}; };
  EXPECT_THAT(look().wrong, HasSubstr("prompt 3, token 1: not the 22"));
}

TEST_F(SecondLooks, find_what_only_an_unwatched_step_does_wrong) {
  after.breaks = [](const auto& text, bool watched) { return !watched && text.size() == 5; };
  EXPECT_THAT(look().wrong, HasSubstr("only when nobody watches"));
}

TEST_F(SecondLooks, find_a_router_that_is_another) {
  after.flips = [](const auto&) { return true; };
  EXPECT_THAT(look().wrong, HasSubstr("16 of 16 choices of experts"));
}

TEST_F(SecondLooks, pass_and_fail_what_is_served) {
  const GreedyRun expected = greedy(before, prompts, 4).value();
  Recording recording = record(before, prompts, expected.tokens).value();
  after.flips = [](const auto& text) { return text == std::vector<std::int32_t>{20, 21}; };
  const Texts own = served_greedy(after, {}, prompts, 4).value();
  EXPECT_FALSE(compare(expected, own, 0.02).agrees);
  const auto passed = replay_served(after, {}, recording, own, 0.02);
  ASSERT_TRUE(passed) << passed.error().message;
  EXPECT_EQ(passed->wrong, "");
  EXPECT_EQ(passed->compared, 24);
  after.breaks = [](const auto& text, bool) { return text.back() == 12; };
  EXPECT_THAT(replay_served(after, {}, recording, own, 0.02)->wrong,
              HasSubstr("prompt 2, token 2"));
}

}  // namespace
}  // namespace gauntlet::study::inline fidelity
