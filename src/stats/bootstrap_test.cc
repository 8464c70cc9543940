#include "stats/bootstrap.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <set>

#include "core/check.h"

namespace gauntlet::stats {
namespace {

/// The mean over the drawn blocks of groups of numbers.
Statistics mean_of(const std::vector<std::vector<double>>& groups) {
  return [&groups](const Drawing& drawing, std::span<double> out) {
    double sum = 0, count = 0;
    for (const DrawnGroup& drawn : drawing) {
      for (const std::size_t block : drawn.blocks) sum += groups[drawn.group][block];
      count += static_cast<double>(drawn.blocks.size());
    }
    out[0] = sum / count;
  };
}

Interval interval_of_mean(const std::vector<std::vector<double>>& groups, double mean,
                          const BootstrapOptions& options = {}) {
  std::vector<std::size_t> sizes;
  for (const auto& group : groups) sizes.push_back(group.size());
  return bootstrap(sizes, std::array{mean}, mean_of(groups), options)[0];
}

TEST(Bootstrap, draws_as_many_groups_and_blocks_as_there_are) {
  const std::array<std::size_t, 3> sizes = {4, 1, 7};
  std::set<std::size_t> groups, blocks;
  const Statistics look = [&](const Drawing& drawing, std::span<double> out) {
    ASSERT_EQ(drawing.size(), 3u);
    for (const DrawnGroup& drawn : drawing) {
      ASSERT_LT(drawn.group, 3u);
      ASSERT_EQ(drawn.blocks.size(), sizes[drawn.group]);
      groups.insert(drawn.group);
      for (const std::size_t block : drawn.blocks) {
        ASSERT_LT(block, sizes[drawn.group]);
        if (drawn.group == 2) blocks.insert(block);
      }
    }
    out[0] = 1;
  };
  bootstrap(sizes, std::array{1.0}, look, {.resamples = 200});
  EXPECT_EQ(groups.size(), 3u);
  EXPECT_EQ(blocks.size(), 7u);
}

TEST(Bootstrap, holds_the_standard_error_of_a_mean) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(i % 2 == 0 ? 90 : 110);
  const Interval of = interval_of_mean({values}, 100);
  // Ten over the root of a hundred, times 1.96.
  EXPECT_NEAR(of.lo, 100 - 1.96, 0.3);
  EXPECT_NEAR(of.hi, 100 + 1.96, 0.3);
}

TEST(Bootstrap, sees_groups_that_differ_though_their_blocks_agree) {
  const std::vector<double> low(50, 1.0), high(50, 3.0);
  const Interval of = interval_of_mean({low, high}, 2);
  EXPECT_LE(of.lo, 1);
  EXPECT_GE(of.hi, 3);
}

TEST(Bootstrap, is_the_same_for_the_same_seed_and_another_for_another) {
  std::vector<double> values(30);
  std::iota(values.begin(), values.end(), 1.0);
  const Interval a = interval_of_mean({values}, 15.5, {.resamples = 100, .seed = 7});
  const Interval b = interval_of_mean({values}, 15.5, {.resamples = 100, .seed = 7});
  const Interval c = interval_of_mean({values}, 15.5, {.resamples = 100, .seed = 8});
  EXPECT_EQ(a.lo, b.lo);
  EXPECT_EQ(a.hi, b.hi);
  EXPECT_NE(a.lo, c.lo);
}

TEST(Bootstrap, widens_the_interval_of_few_blocks) {
  // Of two blocks a drawing has 1, 2 or their mean: the extremes come often enough to be the ends,
  // which are then moved out by the root of two on the logarithmic scale.
  const Interval of = interval_of_mean({{1, 2}}, 1.5);
  EXPECT_NEAR(of.lo, 1.5 * std::pow(1 / 1.5, std::sqrt(2.0)), 1e-9);
  EXPECT_NEAR(of.hi, 1.5 * std::pow(2 / 1.5, std::sqrt(2.0)), 1e-9);
}

TEST(Bootstrap, never_takes_what_is_not_negative_below_zero) {
  EXPECT_EQ(interval_of_mean({{0, 0, 0, 1}}, 0.25).lo, 0);
  EXPECT_LT(interval_of_mean({{-1, 1, -1, 1}}, 0).lo, 0) << "where it may be, it is";
}

TEST(Bootstrap, knows_no_interval_of_one_block) {
  EXPECT_FALSE(interval_of_mean({{3}}, 3).known());
  EXPECT_EQ(interval_of_mean({{3}}, 3).value, 3);
  EXPECT_TRUE(interval_of_mean({{3}, {4}}, 3.5).known()) << "two groups are two";
  EXPECT_THROW(interval_of_mean({}, 3), Fault);
  EXPECT_THROW(interval_of_mean({{3}, {}}, 3), Fault);
}

TEST(Bootstrap, gives_several_statistics_of_the_same_drawings) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const std::array sizes = {values.size()};
  const Statistics both = [&](const Drawing& drawing, std::span<double> out) {
    double sum = 0;
    for (const std::size_t block : drawing.front().blocks) sum += values[block];
    out[0] = sum;
    out[1] = 2 * sum;
  };
  const auto intervals = bootstrap(sizes, std::array{21.0, 42.0}, both);
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_NEAR(intervals[1].lo, 2 * intervals[0].lo, 1e-9);
  EXPECT_NEAR(intervals[1].hi, 2 * intervals[0].hi, 1e-9);
}

}  // namespace
}  // namespace gauntlet::stats
