// Do blocks share the stripes of all experts out without gap or overlap, at about equal cost?
#include "kernels/cuda/product/batch_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

namespace gauntlet::kernels::cuda::inline product {
namespace {

constexpr int kMostWidth = 96;

/// What the kernel's warp plans, expert after expert.
std::vector<BatchRun> runs_of(const std::vector<int>& counts, int stripes, int block, int blocks) {
  std::vector<int> start{0};
  for (const int count : counts) {
    start.push_back(start.back() + stripes * batch_stripe_cost(count, kMostWidth));
  }
  const auto boundary = [&](int b) {
    return static_cast<int>(std::int64_t{start.back()} * b / blocks);
  };
  std::vector<BatchRun> runs;
  int first_slot = 0;
  for (std::size_t e = 0; e < counts.size(); ++e) {
    const int cost = batch_stripe_cost(counts[e], kMostWidth);
    const BatchRun run{.expert = static_cast<int>(e),
                       .first_stripe = batch_stripe_at(boundary(block), start[e], cost, stripes),
                       .end_stripe = batch_stripe_at(boundary(block + 1), start[e], cost, stripes),
                       .first_slot = first_slot,
                       .slots = counts[e]};
    if (run.first_stripe < run.end_stripe) runs.push_back(run);
    first_slot += counts[e];
  }
  return runs;
}

TEST(BatchSchedule, covers_every_stripe_and_slot_once) {
  const std::vector<int> counts{0, 1, 15, 16, 17, 95, 96, 97, 300, 0, 48};
  const int slots = std::accumulate(counts.begin(), counts.end(), 0);
  for (const int stripes : {1, 3, 45, 90}) {
    for (const int blocks : {1, 7, 132}) {
      for (const int most : {3, 4}) {
        std::set<std::tuple<int, int, int>> seen;  // expert, stripe, slot
        for (int block = 0; block < blocks; ++block) {
          const auto runs = runs_of(counts, stripes, block, blocks);
          BatchWalk walk{.runs = runs.data(),
                         .num_runs = static_cast<int>(runs.size()),
                         .most_stripes = most,
                         .most_width = kMostWidth};
          for (BatchWork work; walk.next(work);) {
            ASSERT_GE(work.stripes, 1);
            ASSERT_LE(work.stripes, most);
            ASSERT_GE(work.tokens.slots, 1);
            ASSERT_LE(work.tokens.slots, work.tokens.width);
            ASSERT_LE(work.tokens.width, kMostWidth);
            for (int s = 0; s < work.stripes; ++s) {
              for (int slot = 0; slot < work.tokens.slots; ++slot) {
                ASSERT_TRUE(seen.emplace(work.tokens.expert, work.tokens.row_tile + s,
                                         work.tokens.first_slot + slot)
                                .second);
              }
            }
          }
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(slots) * static_cast<std::size_t>(stripes));
      }
    }
  }
}

TEST(BatchSchedule, gives_blocks_about_the_same_cost) {
  const std::vector<int> counts{3, 40, 8, 0, 12, 96, 23, 17};
  constexpr int kStripes = 90, kBlocks = 13;
  const int all = std::transform_reduce(
      counts.begin(), counts.end(), 0, std::plus<>(),
      [](int count) { return kStripes * batch_stripe_cost(count, kMostWidth); });
  const int dearest = batch_stripe_cost(96, kMostWidth);
  for (int block = 0; block < kBlocks; ++block) {
    int cost = 0;
    for (const BatchRun& run : runs_of(counts, kStripes, block, kBlocks)) {
      cost += (run.end_stripe - run.first_stripe) * batch_stripe_cost(run.slots, kMostWidth);
    }
    EXPECT_NEAR(cost, all / kBlocks, dearest + 1) << block;
  }
}

TEST(BatchSchedule, takes_tiles_that_the_kernel_has) {
  for (int slots = 1; slots <= 600; ++slots) {
    for (const int most : {96, 128}) {
      const BatchTiles cut = batch_tiles(slots, most);
      EXPECT_LE(cut.slots, cut.width);
      EXPECT_GE(cut.tiles * cut.slots, slots);
      EXPECT_LT((cut.tiles - 1) * cut.slots, slots) << "the last has some";
      EXPECT_TRUE((std::set{16, 32, 48, 64, 96, 128}.contains(cut.width))) << slots;
    }
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline product
