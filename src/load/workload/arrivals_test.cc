#include "load/workload/arrivals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gauntlet::load::inline workload {
namespace {

struct Moments {
  double mean = 0;
  double variance = 0;
};

Moments gap_moments(const ArrivalSpec& spec, int count) {
  Arrivals arrivals(spec, 7);
  double before = arrivals.next_s(), sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) {
    const double at = arrivals.next_s();
    EXPECT_GE(at, before);
    sum += at - before;
    squares += (at - before) * (at - before);
    before = at;
  }
  const double mean = sum / count;
  return {.mean = mean, .variance = squares / count - mean * mean};
}

TEST(Arrivals, have_the_mean_and_variance_of_their_gamma_gaps) {
  constexpr int kCount = 200000;
  for (const double burstiness : {0.25, 0.5, 1.0, 4.0}) {
    const auto moments = gap_moments({.rate_per_s = 8, .burstiness = burstiness}, kCount);
    // Standard errors: sd/sqrt(n) of the mean; a gamma's kurtosis is 3 + 6/shape.
    const double variance = 1 / (64 * burstiness);
    EXPECT_NEAR(moments.mean, 0.125, 5 * std::sqrt(variance / kCount));
    EXPECT_NEAR(moments.variance, variance,
                5 * variance * std::sqrt((2 + 6 / burstiness) / kCount));
  }
}

TEST(Arrivals, come_in_equal_gaps_at_a_fixed_rate) {
  Arrivals arrivals({.kind = ArrivalKind::fixed, .rate_per_s = 4}, 1);
  for (int i = 0; i < 9; ++i) EXPECT_DOUBLE_EQ(arrivals.next_s(), 0.25 * i);
}

TEST(Arrivals, depend_on_the_seed_alone_and_scale_with_the_rate) {
  Arrivals a({.rate_per_s = 1}, 3), same({.rate_per_s = 1}, 3), faster({.rate_per_s = 2}, 3),
      other({.rate_per_s = 1}, 4);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const double at = a.next_s();
    EXPECT_EQ(at, same.next_s());
    EXPECT_NEAR(faster.next_s(), at / 2, 1e-9);
    differs |= at != other.next_s();
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace gauntlet::load::inline workload
