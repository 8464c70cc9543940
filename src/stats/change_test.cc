#include "stats/change.h"

#include <gtest/gtest.h>

namespace gauntlet::stats {
namespace {

Interval ratio_within(double lo, double hi) {
  return {.value = std::sqrt(lo * hi), .lo = lo, .hi = hi};
}

TEST(Change, is_one_where_the_interval_lies_beyond_1_however_near) {
  EXPECT_EQ(change(ratio_within(1.001, 1.02)), Change::higher);
  EXPECT_EQ(change(ratio_within(0.98, 0.999)), Change::lower);
  EXPECT_EQ(change(ratio_within(1.5, 9)), Change::higher);
}

TEST(Change, is_none_where_the_interval_holds_1_and_stays_near_it) {
  EXPECT_EQ(change(ratio_within(0.96, 1.04)), Change::same);
  EXPECT_EQ(change(ratio_within(1, 1)), Change::same);
  EXPECT_EQ(change(ratio_within(1 / 1.049, 1.049)), Change::same);
}

TEST(Change, is_unclear_where_the_interval_holds_1_and_more) {
  EXPECT_EQ(change(ratio_within(0.94, 1.01)), Change::unclear);
  EXPECT_EQ(change(ratio_within(0.99, 1.051)), Change::unclear);
  EXPECT_EQ(change({.value = 1}), Change::unclear) << "equal, but nobody knows how sure";
  EXPECT_EQ(change({}), Change::unclear);
}

TEST(Change, turns_round_with_the_ratio) {
  for (const Interval& one : {ratio_within(1.1, 1.2), ratio_within(0.97, 1.03)}) {
    const Change turned = change({.value = 1 / one.value, .lo = 1 / one.hi, .hi = 1 / one.lo});
    EXPECT_EQ(turned, change(one) == Change::higher ? Change::lower : change(one));
  }
}

TEST(Gain, needs_all_of_the_interval_above_the_bar) {
  EXPECT_EQ(gain(ratio_within(1.01, 1.2)), Gain::gain);
  EXPECT_EQ(gain(ratio_within(1.01, 1.2), 1.02), Gain::no_gain);
  EXPECT_EQ(gain(ratio_within(0.9, 1.2)), Gain::no_gain);
  EXPECT_EQ(gain(ratio_within(0.9, 0.99), 1.02), Gain::loss);
  EXPECT_EQ(gain({.value = 3}), Gain::no_gain) << "without an interval nothing is shown";
}

TEST(Names, are_those_of_the_files) {
  EXPECT_STREQ(name_of(Change::higher), "higher");
  EXPECT_STREQ(name_of(Change::unclear), "unclear");
  EXPECT_STREQ(name_of(Gain::no_gain), "no_gain");
  EXPECT_EQ(words_of(Gain::no_gain), "no gain");
  EXPECT_EQ(words_of(Gain::loss), "loss");
}

}  // namespace
}  // namespace gauntlet::stats
