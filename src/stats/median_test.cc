#include "stats/median.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/students_t.hpp>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::stats {
namespace {

TEST(Median, takes_the_middle_or_the_mean_of_two) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({1, 2, 1000}), 2);
  EXPECT_THROW(median({}), Fault);
}

TEST(Quantile, is_the_nearest_of_the_values) {
  std::vector<double> values = {5, 4, 3, 2, 1};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 1), 5);
  EXPECT_EQ(quantile(values, 0.6), 3);
  EXPECT_EQ(quantile(values, 0.65), 4);
  std::vector<double> none;
  EXPECT_THROW(quantile(none, 0.5), Fault);
}

TEST(Spread, is_the_interquartile_range_over_the_median) {
  EXPECT_EQ(spread({1, 2, 3, 4, 5}), (4.0 - 2.0) / 3.0);
  EXPECT_EQ(spread({7, 7, 7, 7}), 0);
  // One outlier in eight does not show: that is what the range is for.
  EXPECT_EQ(spread({7, 7, 7, 7, 7, 7, 7, 900}), 0);
  EXPECT_EQ(spread({1, 100}), 0) << "too few to say";
}

TEST(MedianInterval, takes_the_order_statistics_of_the_binomial) {
  const auto of = [](int count) {
    std::vector<double> values;
    for (int i = count; i >= 1; --i) values.push_back(i);
    return median_interval(values);
  };
  EXPECT_EQ(of(1).value, 1);
  EXPECT_FALSE(of(1).known()) << "one value shows no spread";
  EXPECT_EQ(of(2).lo, 1);
  EXPECT_EQ(of(2).hi, 2);
  EXPECT_EQ(of(6).value, 3.5);
  EXPECT_EQ(of(6).lo, 1);
  EXPECT_EQ(of(8).hi, 8);
  EXPECT_EQ(of(9).lo, 2) << "2 and 8 of 9 hold the median with 96.1%";
  EXPECT_EQ(of(9).hi, 8);
  EXPECT_EQ(of(20).lo, 6);
  EXPECT_EQ(of(20).hi, 15);
  EXPECT_THROW(median_interval({}), Fault);
}

TEST(StudentInterval, is_that_of_the_mean) {
  const Interval of = student_interval({1, 2, 3});
  EXPECT_DOUBLE_EQ(of.value, 2);
  // Two degrees of freedom, a standard error of 1/sqrt(3).
  EXPECT_NEAR(of.hi - 2, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(2 - of.lo, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_THROW(student_interval({1}), Fault);
}

TEST(StudentInterval, is_within_a_third_of_a_percent_of_the_quantile) {
  // Values at 0 and one at 1: the standard error is 1/n.
  for (std::size_t count = 2; count < 500; ++count) {
    std::vector<double> values(count);
    values[0] = 1;
    const auto n = static_cast<double>(count);
    const Interval of = student_interval(values);
    const boost::math::students_t student(n - 1);
    EXPECT_NEAR((of.hi - of.value) * n / boost::math::quantile(student, 0.975), 1, 0.0033) << n;
  }
}

TEST(PredictionInterval, holds_one_more_value_as_often_as_it_says) {
  const Interval of = prediction_interval({1, 2, 3});
  EXPECT_DOUBLE_EQ(of.value, 2);
  EXPECT_NEAR(of.hi - 2, 4.303 * std::sqrt(1 + 1 / 3.0), 1e-9);
  EXPECT_THROW(prediction_interval({1}), Fault);
  Random random(7);
  const auto normal = [&] {  // a sum of twelve that are uniform, less its mean
    double sum = -6;
    for (int i = 0; i < 12; ++i)
      sum += static_cast<double>(random.next_below(1u << 30)) / (1u << 30);
    return sum;
  };
  int held = 0;
  constexpr int kDraws = 4000;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<double> values(4);
    for (double& value : values) value = normal();
    const Interval interval = prediction_interval(values);
    const double one_more = normal();
    held += interval.lo <= one_more && one_more <= interval.hi;
  }
  EXPECT_NEAR(held / static_cast<double>(kDraws), 0.95, 0.02);
}

TEST(StudentInterval, narrows_towards_the_normal_one) {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i % 2 == 0 ? -1 : 1);
  EXPECT_NEAR(student_interval(values).hi, 1.96 / std::sqrt(1000.0), 0.001);
}

}  // namespace
}  // namespace gauntlet::stats
