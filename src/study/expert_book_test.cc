// Are experts written and read back by text, whatever the steps, and replaced only where they
// differ?
#include "study/expert_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/routed_fake.h"

namespace gauntlet::study {
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

TEST(ExpertBooks, hand_experts_on_by_text_though_the_steps_are_others) {
  RoutedFake one(RoutedFake::small()), other(RoutedFake::small());
  other.flips = [](const auto& text) { return text.size() == 3; };
  ExpertBook book;
  {
    BookedExecutor writing(one, book, BookUse::write);
    EXPECT_EQ(step(writing, one.kv().create(), {1, 2, 3, 4}), 5);
  }
  BookedExecutor reading(other, book, BookUse::read);
  const auto sequence = other.kv().create();
  step(reading, sequence, {1, 2});
  EXPECT_EQ(reading.num_replaced(), 0);
  EXPECT_EQ(step(reading, sequence, {3}), 4) << "with the experts of the other";
  step(reading, sequence, {4});
  EXPECT_EQ(reading.num_choices(), 4);
  EXPECT_EQ(reading.num_replaced(), 1);
  EXPECT_TRUE(reading.replaced_within({1, 2, 3, 4}));
  EXPECT_FALSE(reading.replaced_within({1, 2}));
}

TEST(ExpertBooks, leave_alone_what_was_never_written) {
  RoutedFake other(RoutedFake::small());
  other.flips = [](const auto&) { return true; };
  ExpertBook book;
  BookedExecutor reading(other, book, BookUse::read);
  EXPECT_NE(step(reading, other.kv().create(), {1, 2}), 3);
  EXPECT_EQ(reading.num_choices(), 0);
}

TEST(ExpertBooks, find_the_beginning_of_a_text_by_how_it_goes_on) {
  ExpertBook book;
  book.write({7, 8, 9}, 0, {{0}, {1.0f}});
  EXPECT_THAT(book.beginning(2, std::vector<std::int32_t>{9}).value(), ElementsAre(7, 8));
  EXPECT_FALSE(book.beginning(2, std::vector<std::int32_t>{8}));
  EXPECT_FALSE(book.beginning(1, std::vector<std::int32_t>{9}));
}

TEST(ExpertBooks, stop_watching_when_they_are_closed) {
  RoutedFake one(RoutedFake::small());
  ExpertBook book;
  {
    const BookedExecutor writing(one, book, BookUse::write);
  }
  EXPECT_EQ(one.probe, nullptr);
}

}  // namespace
}  // namespace gauntlet::study
