#include "stats/interval.h"

#include <gtest/gtest.h>

namespace gauntlet::stats {
namespace {

/// A value that is known to a factor of e^spread.
Interval within(double value, double spread) {
  return {.value = value, .lo = value / std::exp(spread), .hi = value * std::exp(spread)};
}

TEST(Interval, is_not_known_until_it_is_given) {
  EXPECT_FALSE(Interval{.value = 2}.known());
  EXPECT_TRUE((Interval{.value = 2, .lo = 2, .hi = 2}.known()));
  EXPECT_FALSE((Interval{.value = 2, .lo = 1}.known())) << "one end is none";
}

TEST(Interval, has_half_its_width_over_its_value) {
  EXPECT_DOUBLE_EQ((Interval{.value = 2, .lo = 1.5, .hi = 2.25}.relative_half_width()), 0.1875);
  EXPECT_DOUBLE_EQ((Interval{.value = -2, .lo = -3, .hi = -1}.relative_half_width()), 0.5);
  EXPECT_TRUE(std::isinf(Interval{.value = 2}.relative_half_width()));
  EXPECT_TRUE(std::isinf(Interval{.value = 0, .lo = -1, .hi = 1}.relative_half_width()));
}

TEST(Interval, keeps_its_order_as_a_rate) {
  const Interval per_s = rate(100, {.value = 10, .lo = 8, .hi = 20});
  EXPECT_DOUBLE_EQ(per_s.value, 10);
  EXPECT_DOUBLE_EQ(per_s.lo, 5);
  EXPECT_DOUBLE_EQ(per_s.hi, 12.5);
  const Interval ms = Interval{.value = 10, .lo = 8, .hi = 20}.times(1e3);
  EXPECT_DOUBLE_EQ(ms.lo, 8e3);
  EXPECT_DOUBLE_EQ(ms.hi, 2e4);
  EXPECT_FALSE(rate(100, {.value = 10}).known());
}

TEST(Ratio, adds_distances_in_squares_on_the_logarithmic_scale) {
  const Interval of = ratio(within(10, 0.3), within(30, 0.4));
  EXPECT_DOUBLE_EQ(of.value, 3);
  EXPECT_NEAR(of.lo, 3 / std::exp(0.5), 1e-9);
  EXPECT_NEAR(of.hi, 3 * std::exp(0.5), 1e-9);
}

TEST(Ratio, takes_the_upper_end_of_one_with_the_lower_of_the_other) {
  const Interval of =
      ratio({.value = 1, .lo = 1, .hi = 2}, {.value = 1, .lo = 1, .hi = 1});  // a may be larger
  EXPECT_DOUBLE_EQ(of.lo, 0.5);
  EXPECT_DOUBLE_EQ(of.hi, 1);
}

TEST(Ratio, is_not_known_where_an_interval_is_missing_or_touches_zero) {
  EXPECT_EQ(ratio({.value = 0}, within(3, 0.1)).value, 0);
  EXPECT_FALSE(ratio({.value = 2}, within(3, 0.1)).known());
  EXPECT_DOUBLE_EQ(ratio({.value = 2}, within(3, 0.1)).value, 1.5);
  EXPECT_FALSE(ratio({.value = 2, .lo = 0, .hi = 3}, within(3, 0.1)).known());
}

}  // namespace
}  // namespace gauntlet::stats
