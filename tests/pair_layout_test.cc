// Do kernels of the catalogue that no CPU can run at least place their words, and share their
// tiles, as they must?
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "catalog/ch09/wgmma_matmul/swizzle.h"
#include "catalog/ch10/cluster_matmul/sharing.h"

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

}  // namespace
}  // namespace gauntlet::tests
