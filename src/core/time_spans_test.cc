#include "core/time_spans.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet {
namespace {

TEST(TimeSpans, cover_nothing_when_there_are_none) {
  EXPECT_EQ(covered_ns({}), 0);
  EXPECT_EQ(covered_ns({{.begin_ns = 5, .end_ns = 5}}), 0);
  EXPECT_EQ(covered_ns({{.begin_ns = 9, .end_ns = 5}}), 0);
}

TEST(TimeSpans, count_once_what_overlaps) {
  EXPECT_EQ(covered_ns({{0, 10}, {20, 30}}), 20);
  EXPECT_EQ(covered_ns({{0, 10}, {10, 20}}), 20);
  EXPECT_EQ(covered_ns({{0, 10}, {5, 20}}), 20);
  EXPECT_EQ(covered_ns({{0, 30}, {5, 20}, {25, 28}}), 30);
  EXPECT_EQ(covered_ns({{5, 20}, {0, 10}, {5, 20}}), 20);
  EXPECT_EQ(covered_ns({{-20, -10}, {-15, 5}}), 25);
}

TEST(TimeSpans, cover_as_much_as_counting_moment_by_moment_finds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Random random(seed);
    std::vector<TimeSpan> spans;
    std::vector<bool> moments(100, false);
    const std::uint64_t count = random.below(12, 0);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto begin = static_cast<std::int64_t>(random.below(80, 2 * i + 1));
      const auto end = begin + static_cast<std::int64_t>(random.below(20, 2 * i + 2));
      spans.push_back({begin, end});
      for (std::int64_t at = begin; at < end; ++at) moments[static_cast<std::size_t>(at)] = true;
    }
    EXPECT_EQ(covered_ns(spans), std::ranges::count(moments, true)) << "seed " << seed;
  }
}

TEST(LanesAtATime, are_one_when_they_take_turns) {
  EXPECT_EQ(lanes_at_a_time({{{0, 10}, {20, 30}}, {{10, 20}, {30, 40}}}), 1);
  EXPECT_EQ(lanes_at_a_time({{{0, 10}}, {{100, 110}}}), 1);
  EXPECT_EQ(lanes_at_a_time({{{0, 10}, {5, 20}}}), 1) << "a lane beside itself is still one";
}

TEST(LanesAtATime, are_all_of_them_when_all_work_all_the_time) {
  EXPECT_EQ(lanes_at_a_time({{{0, 10}}, {{0, 10}}, {{0, 5}, {5, 10}}}), 3);
}

TEST(LanesAtATime, lie_between_when_part_overlaps) {
  EXPECT_EQ(lanes_at_a_time({{{0, 10}}, {{5, 15}}}), 20.0 / 15);
}

TEST(LanesAtATime, are_none_when_nothing_was_done) {
  EXPECT_EQ(lanes_at_a_time({}), 0);
  EXPECT_EQ(lanes_at_a_time({{}, {}}), 0);
}

}  // namespace
}  // namespace gauntlet
