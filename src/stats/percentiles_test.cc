#include "stats/percentiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random.h"

namespace gauntlet::stats {
namespace {

double normal(Random& random) {
  const double u = (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(random.next() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

TEST(Percentiles, interpolate_as_numpy_does) {
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4}, 50), 2.5);
  EXPECT_NEAR(percentile({1, 2, 3, 4}, 90), 3.7, 1e-6);
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4}, 100), 4);
  EXPECT_DOUBLE_EQ(percentile({5}, 99), 5);
  EXPECT_DOUBLE_EQ(percentile({}, 50), 0);
}

TEST(Percentiles, are_of_all_blocks_together) {
  const Percentiles all = percentiles({{1, 2}, {}, {3, 4, 5}}, 1);
  EXPECT_EQ(all.count, 5);
  EXPECT_DOUBLE_EQ(all.mean.value, 3);
  EXPECT_DOUBLE_EQ(all.median.value, 3);
  EXPECT_DOUBLE_EQ(all.max, 5);
  EXPECT_FALSE(all.median.known());
  EXPECT_EQ(percentiles({}, 1).count, 0);
}

TEST(Percentiles, round_their_intervals_outwards) {
  const Percentiles same = percentiles(std::vector(5, std::vector<float>{0.5f, 0.5f}), 1);
  EXPECT_LE(same.p95.lo, 0.5);
  EXPECT_GE(same.p95.hi, 0.5);
  EXPECT_GT(same.p95.hi - same.p95.lo, 0.004) << "a step of the histogram is 1%";
  EXPECT_EQ(same.mean.lo, same.mean.hi) << "the mean needs no histogram";
}

TEST(Percentiles, hold_the_truth_in_most_intervals_even_where_neighbours_are_alike) {
  int median_held = 0, mean_held = 0, p95_held = 0;
  constexpr int kRounds = 100;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    Random random(round);
    std::vector<std::vector<float>> blocks(20);
    for (auto& block : blocks) {
      const double shared = 0.3 * normal(random);
      for (int i = 0; i < 25; ++i) {
        block.push_back(static_cast<float>(0.1 * std::exp(shared + 0.3 * normal(random))));
      }
    }
    const double sigma = 0.3 * std::sqrt(2.0);
    const Percentiles got = percentiles(blocks, 1);
    median_held += got.median.lo <= 0.1 && 0.1 <= got.median.hi;
    const double mean = 0.1 * std::exp(sigma * sigma / 2), p95 = 0.1 * std::exp(1.6449 * sigma);
    mean_held += got.mean.lo <= mean && mean <= got.mean.hi;
    p95_held += got.p95.lo <= p95 && p95 <= got.p95.hi;
  }
  EXPECT_GE(median_held, 88);
  EXPECT_GE(mean_held, 85);
  EXPECT_GE(p95_held, 80);
}

TEST(GroupedPercentile, is_that_of_all_values_together) {
  const GroupedValues values = {{{4, 1}, {3}}, {{}}, {{2, 5}}};
  EXPECT_DOUBLE_EQ(grouped_percentile(values, 50).value, 3);
  EXPECT_DOUBLE_EQ(grouped_percentile(values, 100).value, 5);
  EXPECT_DOUBLE_EQ(grouped_percentile(values, 0).value, 1);
  EXPECT_DOUBLE_EQ(grouped_percentile(values, 90).value, 4.6);
  EXPECT_TRUE(std::isnan(grouped_percentile({}, 50).value));
  EXPECT_TRUE(std::isnan(grouped_percentile({{{}}}, 50).value));
}

TEST(GroupedPercentile, agrees_with_sorting_whatever_the_blocks) {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    GroupedValues values(1 + random.next_below(3));
    std::vector<float> all;
    for (auto& blocks : values) {
      blocks.resize(1 + random.next_below(4));
      for (auto& block : blocks) {
        block.resize(1 + random.next_below(6));
        for (float& value : block) value = static_cast<float>(random.next_below(10));
        all.insert(all.end(), block.begin(), block.end());
      }
    }
    std::ranges::sort(all);
    const double percent = static_cast<double>(random.next_below(101));
    const Interval got = grouped_percentile(values, percent);
    EXPECT_NEAR(got.value, percentile(all, percent), 1e-6);
    const std::size_t drawn_from = values.size() > 1 ? values.size() : values[0].size();
    EXPECT_EQ(got.known(), drawn_from > 1) << "one block in all has no interval";
  }
}

TEST(GroupedPercentile, is_as_wide_as_processes_differ) {
  GroupedValues alike(3), apart(3);
  for (std::size_t process = 0; process < 3; ++process) {
    for (int block = 0; block < 10; ++block) {
      alike[process].push_back({9, 10, 11});
      const auto middle = static_cast<float>(8 + 2 * process);
      apart[process].push_back({middle - 1, middle, middle + 1});
    }
  }
  EXPECT_LT(grouped_percentile(alike, 50).relative_half_width(), 0.01);
  EXPECT_GT(grouped_percentile(apart, 50).relative_half_width(), 0.1);
}

TEST(RatioOfSums, has_an_interval_around_it) {
  std::vector<double> above, below;
  for (int i = 0; i < 20; ++i) {
    above.push_back(i % 2 == 0 ? 9 : 11);
    below.push_back(2);
  }
  const Interval ratio = ratio_of_sums(above, below, 1);
  EXPECT_DOUBLE_EQ(ratio.value, 5);
  EXPECT_GT(ratio.lo, 4.6);
  EXPECT_LT(ratio.lo, 5);
  EXPECT_GT(ratio.hi, 5);
  EXPECT_LT(ratio.hi, 5.4);
}

TEST(RatioOfSums, is_a_plain_number_of_few_blocks_and_nothing_of_none) {
  EXPECT_DOUBLE_EQ(ratio_of_sums({1, 1, 1, 2}, {2, 2, 2, 2}, 1).value, 0.625);
  EXPECT_FALSE(ratio_of_sums({1, 1, 1, 2}, {2, 2, 2, 2}, 1).known());
  EXPECT_EQ(ratio_of_sums({0}, {0}, 1).value, 0);
  EXPECT_FALSE(ratio_of_sums({}, {}, 1).known());
}

TEST(RatioOfSums, stays_zero_of_nothing_counted) {
  const Interval none = ratio_of_sums({0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}, 1);
  EXPECT_EQ(none.value, 0);
  EXPECT_EQ(none.lo, 0);
  EXPECT_EQ(none.hi, 0);
}

}  // namespace
}  // namespace gauntlet::stats
