// Are experts recorded and replayed by text, whatever the steps, and replaced only where they
// differ?
#include "study/fidelity/expert_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/fidelity/routed_fake.h"

namespace gauntlet::study::inline fidelity {
namespace {

using testing::ElementsAre;

/// Runs tokens of a sequence as one step.
std::int32_t step(engine::Executor& executor, engine::SequenceId sequence,
                  std::vector<std::int32_t> tokens) {
  EXPECT_TRUE(executor.kv().reserve(sequence, std::ssize(tokens)));
  std::vector<engine::BatchItem> items(1);
  items[0].sequence = sequence;
  items[0].tokens = std::move(tokens);
  return executor.collect(executor.submit(std::move(items)))[0].token;
}

TEST(RecordedExperts, hand_experts_on_by_text_though_the_steps_are_others) {
  RoutedFake one(RoutedFake::small()), other(RoutedFake::small());
  other.flips = [](const auto& text) { return text.size() == 3; };
  RecordedExperts recorded;
  {
    ReplayExecutor recording(one, recorded, ReplayUse::record);
    EXPECT_EQ(step(recording, one.kv().create(), {1, 2, 3, 4}), 5);
  }
  ReplayExecutor replaying(other, recorded, ReplayUse::replay);
  const auto sequence = other.kv().create();
  step(replaying, sequence, {1, 2});
  EXPECT_EQ(replaying.num_replaced(), 0);
  EXPECT_EQ(step(replaying, sequence, {3}), 4) << "with the experts of the other";
  step(replaying, sequence, {4});
  EXPECT_EQ(replaying.num_choices(), 4);
  EXPECT_EQ(replaying.num_replaced(), 1);
  EXPECT_TRUE(replaying.replaced_within({1, 2, 3, 4}));
  EXPECT_FALSE(replaying.replaced_within({1, 2}));
}

TEST(RecordedExperts, leave_alone_what_was_never_recorded) {
  RoutedFake other(RoutedFake::small());
  other.flips = [](const auto&) { return true; };
  RecordedExperts recorded;
  ReplayExecutor replaying(other, recorded, ReplayUse::replay);
  EXPECT_NE(step(replaying, other.kv().create(), {1, 2}), 3);
  EXPECT_EQ(replaying.num_choices(), 0);
}

TEST(RecordedExperts, find_the_beginning_of_a_text_by_how_it_goes_on) {
  RecordedExperts recorded;
  recorded.add({7, 8, 9}, 0, {{0}, {1.0f}});
  EXPECT_THAT(recorded.beginning(2, std::vector<std::int32_t>{9}).value(), ElementsAre(7, 8));
  EXPECT_FALSE(recorded.beginning(2, std::vector<std::int32_t>{8}));
  EXPECT_FALSE(recorded.beginning(1, std::vector<std::int32_t>{9}));
}

TEST(RecordedExperts, stop_watching_when_they_are_closed) {
  RoutedFake one(RoutedFake::small());
  RecordedExperts recorded;
  { const ReplayExecutor recording(one, recorded, ReplayUse::record); }
  EXPECT_EQ(one.probe, nullptr);
}

}  // namespace
}  // namespace gauntlet::study::inline fidelity
