#include "load/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "load/draws.h"

namespace gauntlet::load {
namespace {

TEST(Statistics, interpolate_percentiles_as_numpy_does) {
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4}, 50), 2.5);
  EXPECT_NEAR(percentile({1, 2, 3, 4}, 90), 3.7, 1e-6);
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4}, 100), 4);
  EXPECT_DOUBLE_EQ(percentile({5}, 99), 5);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0);
}

TEST(Statistics, summarize_all_blocks_together) {
  const Percentiles all = summarize({{1, 2}, {}, {3, 4, 5}}, 1);
  EXPECT_EQ(all.count, 5);
  EXPECT_DOUBLE_EQ(all.mean.value, 3);
  EXPECT_DOUBLE_EQ(all.median.value, 3);
  EXPECT_DOUBLE_EQ(all.max, 5);
  EXPECT_FALSE(all.median.has_interval());
  EXPECT_EQ(summarize({}, 1).count, 0);
}

TEST(Statistics, hold_the_truth_in_most_intervals_even_where_neighbours_are_alike) {
  int median_held = 0, mean_held = 0, p95_held = 0;
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds; ++round) {
    Draws draws(static_cast<std::uint64_t>(round), 9);
    std::vector<std::vector<float>> blocks(kBlocks);
    for (auto& block : blocks) {
      const double shared = 0.3 * draws.normal();
      for (int i = 0; i < 25; ++i) {
        block.push_back(static_cast<float>(0.1 * std::exp(shared + 0.3 * draws.normal())));
      }
    }
    const double sigma = 0.3 * std::sqrt(2.0);
    const Percentiles got = summarize(blocks, 1);
    median_held += got.median.lo <= 0.1 && 0.1 <= got.median.hi;
    const double mean = 0.1 * std::exp(sigma * sigma / 2), p95 = 0.1 * std::exp(1.6449 * sigma);
    mean_held += got.mean.lo <= mean && mean <= got.mean.hi;
    p95_held += got.p95.lo <= p95 && p95 <= got.p95.hi;
  }
  EXPECT_GE(median_held, 88);
  EXPECT_GE(mean_held, 85);
  EXPECT_GE(p95_held, 80);
}

TEST(Statistics, give_ratios_of_sums_an_interval_around_them) {
  std::vector<double> above, below;
  for (int i = 0; i < 20; ++i) {
    above.push_back(i % 2 == 0 ? 9 : 11);
    below.push_back(2);
  }
  const Figure ratio = ratio_of_sums(above, below, 1);
  EXPECT_DOUBLE_EQ(ratio.value, 5);
  EXPECT_GT(ratio.lo, 4.6);
  EXPECT_LT(ratio.lo, 5);
  EXPECT_GT(ratio.hi, 5);
  EXPECT_LT(ratio.hi, 5.4);
  EXPECT_FALSE(ratio_of_sums({1}, {2}, 1).has_interval());
  EXPECT_EQ(ratio_of_sums({0}, {0}, 1).value, 0);
}

TEST(Statistics, combine_intervals_of_a_ratio_in_squares) {
  const Figure a{.value = 10, .lo = 10 / std::exp(0.3), .hi = 10 * std::exp(0.3)};
  const Figure b{.value = 30, .lo = 30 / std::exp(0.4), .hi = 30 * std::exp(0.4)};
  const Figure ratio = ratio_of(a, b);
  EXPECT_DOUBLE_EQ(ratio.value, 3);
  EXPECT_NEAR(ratio.lo, 3 / std::exp(0.5), 1e-9);
  EXPECT_NEAR(ratio.hi, 3 * std::exp(0.5), 1e-9);
  EXPECT_EQ(ratio_of({.value = 0}, b).value, 0);
  EXPECT_FALSE(ratio_of({.value = 2}, b).has_interval());
}

}  // namespace
}  // namespace gauntlet::load
