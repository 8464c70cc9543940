#include "core/ranks/intervals.h"

#include <gtest/gtest.h>

namespace gauntlet::ranks {
namespace {

TEST(Intervals, that_touch_count_once) {
  const Overlap overlap = overlap_of({{5, 7}, {0, 2}, {1, 3}, {3, 4}, {9, 9}}, {});
  EXPECT_EQ(overlap.covered, 6);
  EXPECT_EQ(overlap.shared, 0);
}

TEST(Intervals, share_what_both_cover) {
  EXPECT_EQ(overlap_of({{0, 10}}, {{2, 3}, {2, 4}, {9, 20}}).shared, 3);
  EXPECT_EQ(overlap_of({{0, 1}, {2, 3}, {4, 5}}, {{0.5, 4.5}}).shared, 2);
  EXPECT_EQ(overlap_of({{0, 1}}, {{1, 2}}).shared, 0);
  EXPECT_EQ(overlap_of({}, {{1, 2}}).covered, 0);
}

}  // namespace
}  // namespace gauntlet::ranks
