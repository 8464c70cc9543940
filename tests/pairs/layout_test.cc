// Do kernels of the catalogue that no CPU can run at least place their words, and share their
// tiles, as they must?
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "catalog/ch09/wgmma_matmul/swizzle.h"
#include "catalog/ch10/cluster_matmul/sharing.h"
#include "catalog/labs/matmul_ladder/even_work.h"
#include "catalog/labs/matmul_ladder/tile_order.h"
#include "ptx/tcgen05_descriptor.h"

namespace gauntlet::tests {
namespace {

TEST(PairLayout, swizzles_as_tensor_maps_do) {
  using ch09::wgmma_matmul::swizzled;
  constexpr int kRows = 64, kColumns = 32;
  std::set<int> places;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      // The hardware's rule, in bytes: bits 4 to 6 of an address are xored with bits 7 to 9.
      const int plain = 4 * (row * kColumns + column);
      EXPECT_EQ(4 * swizzled(row, column), plain ^ (plain >> 7 & 7) << 4);
      places.insert(swizzled(row, column));
    }
  }
  EXPECT_EQ(places.size(), static_cast<std::size_t>(kRows * kColumns));
  EXPECT_EQ(*places.rbegin(), kRows * kColumns - 1);
}

TEST(PairLayout, gives_each_block_of_a_cluster_both_tiles_once) {
  namespace pair = ch10::cluster_matmul;
  for (int to = 0; to < pair::kBlocks; ++to) {
    std::multiset<int> rows, columns, writers;
    for (int from = 0; from < pair::kBlocks; ++from) {
      const bool has_rows = pair::sharing_rows(from) >> to & 1;
      const bool has_columns = pair::sharing_columns(from) >> to & 1;
      // Same rows: the same x, which is the cluster's fastest dimension.
      EXPECT_EQ(has_rows, from % 2 == to % 2);
      EXPECT_EQ(has_columns, from / 2 == to / 2);
      if (has_rows) rows.insert(pair::part_of_rows(from));
      if (has_columns) columns.insert(pair::part_of_columns(from));
      if (has_rows || has_columns) writers.insert(from);
    }
    EXPECT_EQ(rows, (std::multiset<int>{0, 1}));
    EXPECT_EQ(columns, (std::multiset<int>{0, 1}));
    std::multiset<int> told;
    for (int i = 0; i < pair::kWriters; ++i) told.insert(pair::writer(to, i));
    EXPECT_EQ(told, writers) << "block " << to;
  }
  for (int rank = 0; rank < pair::kBlocks; ++rank) {
    EXPECT_EQ(std::popcount(pair::sharing_rows(rank)), pair::kShares);
    EXPECT_EQ(std::popcount(pair::sharing_columns(rank)), pair::kShares);
  }
}

TEST(PairLayout, goes_to_each_tile_once_and_stays_near_it) {
  using labs::matmul_ladder::tile_in_groups;
  for (const int rows : {1, 7, 8, 20}) {
    for (const int columns : {1, 5, 32}) {
      std::set<std::pair<int, int>> places;
      for (int tile = 0; tile < rows * columns; ++tile) {
        const auto at = tile_in_groups(tile, rows, columns);
        ASSERT_TRUE(at.row >= 0 && at.row < rows && at.column >= 0 && at.column < columns);
        places.insert({at.row, at.column});
      }
      EXPECT_EQ(places.size(), static_cast<std::size_t>(rows * columns));
    }
  }
  // 64 tiles of the middle of a large product need 8 rows and 8 columns.
  std::set<int> rows, columns;
  for (int tile = 256; tile < 320; ++tile) {
    rows.insert(tile_in_groups(tile, 32, 32).row);
    columns.insert(tile_in_groups(tile, 32, 32).column);
  }
  EXPECT_EQ(rows.size(), 8u);
  EXPECT_EQ(columns.size(), 8u);
}

TEST(PairLayout, shares_out_every_step_of_every_tile_once) {
  using labs::matmul_ladder::EvenWork;
  using labs::matmul_ladder::WorkItem;
  for (const int clusters : {1, 3, 66}) {
    for (const int tiles : {1, 2, 5, 65, 66, 67, 132, 133, 256, 1024}) {
      for (const int steps : {1, 3, 128}) {
        std::vector<int> seen(static_cast<std::size_t>(tiles * steps));
        int least = tiles * steps, most = 0;
        for (int cluster = 0; cluster < clusters; ++cluster) {
          EvenWork work(tiles, steps, clusters, cluster);
          WorkItem item;
          int own = 0, cut_ends = 0;
          while (work.next(item)) {
            ASSERT_LT(item.first, item.end);
            for (int step = item.first; step < item.end; ++step) ++seen[item.tile * steps + step];
            own += item.end - item.first;
            if (item.first > 0) {
              // The end of a tile of which the cluster before has the beginning: nobody else.
              ASSERT_EQ(item.end, steps);
              ++cut_ends;
              EvenWork before(tiles, steps, clusters, cluster - 1);
              WorkItem last;
              while (before.next(last)) {
              }
              ASSERT_EQ(last.tile, item.tile);
              ASSERT_EQ(last.first, 0);
              ASSERT_EQ(last.end, item.first);
            }
          }
          ASSERT_LE(cut_ends, 1);
          least = std::min(least, own);
          most = std::max(most, own);
        }
        for (const int times : seen) ASSERT_EQ(times, 1);
        if (tiles < clusters) continue;
        ASSERT_LE(most - least, 1) << tiles << " tiles, " << clusters;
      }
    }
  }
}

constexpr std::uint64_t field(std::uint64_t bits, int first, int end) {
  return bits >> first & ((std::uint64_t{1} << (end - first)) - 1);
}

// No machine of this project has a Blackwell GPU: the fields are those of the PTX manual's tables.
TEST(PairLayout, tells_tcgen05_what_it_multiplies) {
  for (const std::uint32_t m : {128u, 256u}) {
    const std::uint32_t what = ptx::tcgen05_tf32(m, 256);
    EXPECT_EQ(field(what, 4, 6), 1u) << "sums are fp32";
    EXPECT_EQ(field(what, 7, 10), 2u) << "A is tf32";
    EXPECT_EQ(field(what, 10, 13), 2u) << "B is tf32";
    EXPECT_EQ(field(what, 13, 17), 0u) << "neither is negated, both are K-major";
    EXPECT_EQ(field(what, 17, 23), 256u / 8);
    EXPECT_EQ(field(what, 24, 29), m / 16);
    EXPECT_EQ(field(what, 0, 4) | field(what, 6, 7) | field(what, 23, 24) | field(what, 29, 32),
              0u);
    const std::uint32_t of_bf16 = ptx::tcgen05_bf16(m, 256);
    EXPECT_EQ(field(of_bf16, 7, 10), 1u) << "A is bf16";
    EXPECT_EQ(field(of_bf16, 10, 13), 1u) << "B is bf16";
    EXPECT_EQ(of_bf16 & ~0x1F80u, what & ~0x1F80u) << "the rest is as of tf32";
  }
  for (const std::uint32_t address : {0u, 1024u, 196608u}) {
    const std::uint64_t tile = ptx::tcgen05_tile_128b(address);
    EXPECT_EQ(field(tile, 0, 14), address / 16);
    EXPECT_EQ(field(tile, 16, 30), 1u);
    EXPECT_EQ(field(tile, 32, 46), 1024u / 16) << "between groups of 8 rows";
    EXPECT_EQ(field(tile, 46, 48), 1u) << "version";
    EXPECT_EQ(field(tile, 48, 61), 0u);
    EXPECT_EQ(field(tile, 61, 64), 2u) << "128-byte swizzle";
  }
  EXPECT_EQ(ptx::tensor_memory_at(64, 96, 32), (96u << 16) + 96);
}

}  // namespace
}  // namespace gauntlet::tests
