#include "stats/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/check.h"
#include "core/random.h"
#include "stats/median.h"

namespace gauntlet::stats {
namespace {

double ratio_of(const Block& block) { return block.ratio(0, 1); }

/// A block of two sides, the second of which takes 100 ns.
Block block_of(double ratio) { return {.ns = {{100 * ratio, 100 * ratio}, {100, 100}}}; }

double normal(Random& random) {
  const double u = (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(random.next() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

/// How an experiment's ratios scatter around the true one, as standard deviations of their
/// logarithm.
struct Scatter {
  double process = 0;
  double block = 0;
};

std::vector<ProcessBlocks> experiment(double truth, int processes, int blocks, Scatter scatter,
                                      Random& random) {
  std::vector<ProcessBlocks> result(static_cast<std::size_t>(processes));
  for (ProcessBlocks& one : result) {
    const double shift = scatter.process * normal(random);
    for (int i = 0; i < blocks; ++i) {
      one.push_back(block_of(truth * std::exp(shift + scatter.block * normal(random))));
    }
  }
  return result;
}

double coverage_percent(int experiments, int processes, int blocks, Scatter scatter) {
  constexpr double kTruth = 1.3;
  Random random(2024);
  int covered = 0;
  for (int i = 0; i < experiments; ++i) {
    const Interval ratio = estimate(experiment(kTruth, processes, blocks, scatter, random),
                                    ratio_of, static_cast<std::uint64_t>(i));
    covered += ratio.lo <= kTruth && kTruth <= ratio.hi;
  }
  return 100.0 * covered / experiments;
}

TEST(Block, compares_the_sums_of_both_halves) {
  const Block block{.ns = {{300, 100}, {50, 150}}};
  EXPECT_EQ(block.ratio(0, 1), 2);
  EXPECT_EQ(block.ratio(1, 0), 0.5);
}

TEST(Block, compares_any_two_of_its_sides) {
  const Block block{.ns = {{600, 600}, {300, 300}, {100, 100}}};
  EXPECT_EQ(block.mean(1), 300);
  EXPECT_EQ(block.ratio(0, 1), 2);
  EXPECT_EQ(block.ratio(0, 2), 6);
  EXPECT_EQ(block.ratio(1, 2), 3);
}

TEST(Estimate, gives_the_median_of_the_processes_medians) {
  const Interval ratio = estimate({{block_of(1), block_of(2)}, {block_of(3)}}, ratio_of, 1);
  EXPECT_DOUBLE_EQ(ratio.value, 2.25);
  EXPECT_LE(ratio.lo, 2.25);
  EXPECT_GE(ratio.hi, 2.25);
}

TEST(Estimate, lets_a_process_weigh_the_same_however_many_blocks_it_needed) {
  // Over all blocks the median would be that of the long process alone, 3.
  const ProcessBlocks quiet(8, block_of(1.0)), also_quiet(8, block_of(1.1));
  const ProcessBlocks noisy(400, block_of(3.0));
  EXPECT_DOUBLE_EQ(estimate({quiet, noisy, also_quiet}, ratio_of, 1).value, 1.1);
}

TEST(Estimate, of_two_sides_is_their_ratio) {
  const ProcessBlocks blocks(6, Block{.ns = {{600, 600}, {300, 300}, {100, 100}}});
  EXPECT_DOUBLE_EQ(estimate_ratio({blocks, blocks}, 0, 2).value, 6);
  EXPECT_DOUBLE_EQ(estimate_ratio({blocks, blocks}, 2, 1).value, 1.0 / 3);
}

TEST(Estimate, knows_no_interval_of_one_block) {
  const Interval ratio = estimate({{block_of(2)}}, ratio_of, 1);
  EXPECT_DOUBLE_EQ(ratio.value, 2);
  EXPECT_FALSE(ratio.known());
}

TEST(Estimate, has_no_width_without_noise) {
  const ProcessBlocks same(8, block_of(1.5));
  const Interval ratio = estimate({same, same, same}, ratio_of, 1);
  EXPECT_DOUBLE_EQ(ratio.lo, 1.5);
  EXPECT_DOUBLE_EQ(ratio.hi, 1.5);
  EXPECT_EQ(ratio.relative_half_width(), 0);
}

TEST(Estimate, is_the_same_for_the_same_seed) {
  Random random(5);
  const auto blocks = experiment(1.3, 3, 10, {.process = 0.01, .block = 0.02}, random);
  const Interval a = estimate(blocks, ratio_of, 7), b = estimate(blocks, ratio_of, 7);
  EXPECT_EQ(a.lo, b.lo);
  EXPECT_EQ(a.hi, b.hi);
}

TEST(Estimate, skips_processes_without_blocks_and_refuses_none_at_all) {
  const ProcessBlocks some(4, block_of(2));
  EXPECT_DOUBLE_EQ(estimate({{}, some, {}}, ratio_of, 1).value, 2);
  EXPECT_THROW(estimate({}, ratio_of, 1), Fault);
  EXPECT_THROW(estimate({{}, {}}, ratio_of, 1), Fault);
}

TEST(Estimate, never_goes_below_zero) {
  const Interval ratio =
      estimate({{block_of(0.1), block_of(5)}, {block_of(9), block_of(0.01)}}, ratio_of, 1);
  EXPECT_GE(ratio.lo, 0);
}

TEST(Estimate, narrows_with_more_blocks) {
  Random random(9);
  const Scatter noise{.block = 0.05};
  const Interval few = estimate({experiment(1.3, 1, 10, noise, random)[0]}, ratio_of, 1);
  const Interval many = estimate({experiment(1.3, 1, 400, noise, random)[0]}, ratio_of, 1);
  // Forty times the blocks: about a sixth of the width.
  EXPECT_LT(many.relative_half_width(), few.relative_half_width() / 2);
  EXPECT_GT(many.relative_half_width(), 0);
}

TEST(Estimate, sees_that_processes_differ_though_their_blocks_agree) {
  // A hundred blocks per process say nothing about what the next process will do.
  const ProcessBlocks low(100, block_of(1.0)), middle(100, block_of(1.1)), high(100, block_of(1.2));
  const Interval ratio = estimate({low, middle, high}, ratio_of, 1);
  EXPECT_LE(ratio.lo, 1.0);
  EXPECT_GE(ratio.hi, 1.2);
}

TEST(Estimate, covers_the_truth_when_blocks_scatter) {
  EXPECT_GE(coverage_percent(300, 3, 12, {.block = 0.02}), 90);
}

TEST(Estimate, covers_the_truth_when_processes_scatter_as_much_as_blocks) {
  EXPECT_GE(coverage_percent(300, 3, 12, {.process = 0.02, .block = 0.02}), 90);
}

TEST(Estimate, covers_the_truth_when_processes_scatter_most) {
  EXPECT_GE(coverage_percent(300, 3, 12, {.process = 0.03, .block = 0.005}), 90);
  EXPECT_GE(coverage_percent(300, 6, 12, {.process = 0.03, .block = 0.005}), 90);
}

TEST(Estimate, covers_the_truth_when_a_block_in_ten_is_disturbed) {
  constexpr double kTruth = 1.3;
  Random random(77);
  int covered = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    auto processes = experiment(kTruth, 3, 12, {.process = 0.01, .block = 0.01}, random);
    for (ProcessBlocks& blocks : processes) {
      for (Block& block : blocks) {
        // An interruption slows either side: the ratio's error has no preferred sign.
        const std::size_t slowed = random.next_below(2);
        if (random.next_below(10) == 0) block.ns[slowed][0] *= 3;
      }
    }
    const Interval ratio = estimate(processes, ratio_of, i);
    covered += ratio.lo <= kTruth && kTruth <= ratio.hi;
  }
  EXPECT_GE(covered, 180);
}

TEST(Estimate, is_not_so_wide_that_it_says_nothing) {
  Random random(31);
  std::vector<double> widths;
  for (std::uint64_t i = 0; i < 50; ++i) {
    widths.push_back(estimate(experiment(1.3, 3, 12, {.block = 0.02}, random), ratio_of, i)
                         .relative_half_width());
  }
  // The median of 12 blocks has a standard error of 0.02 * 1.25 / sqrt(12) = 0.72%; Student's
  // interval of three such is 4.3 / sqrt(3) times as wide, 1.8%.
  EXPECT_LT(median(widths), 0.025);
}

}  // namespace
}  // namespace gauntlet::stats
