// Which rows and columns a block of a decode product takes, in which order, and the columns in its
// shared memory.
#pragma once
#include <cuda_bf16.h>

#include "kernels/cuda/product/product.h"

namespace gauntlet::kernels::cuda::inline product {

constexpr int kMostExperts = 256;
constexpr int kRowPad = 16;  // bytes between rows of x, so that eight of them fall on all banks

struct DecodeLayout {
  int row_tiles;
  int col_blocks;
  int columns_per_group;
  int plain_groups;  // of a plain product
  int x_row_bytes;
};

inline DecodeLayout decode_layout(const Product& p, int token_tiles) {
  const int per_group = 8 * token_tiles;
  const auto col_blocks = static_cast<int>(p.weights.col_blocks());
  return {.row_tiles = static_cast<int>((p.weights.rows + kTileRows - 1) / kTileRows),
          .col_blocks = col_blocks,
          .columns_per_group = per_group,
          .plain_groups = static_cast<int>((p.num_columns + per_group - 1) / per_group),
          .x_row_bytes = col_blocks * kBlockCols * 2 + kRowPad};
}

/// A tile of rows with the columns it is multiplied with.
struct DecodeItem {
  int expert = 0;
  int tile = 0;
  int first_column = 0;
  int num_columns = 0;
  int group = -1;  // of columns: what x must be in shared memory
};

/// Where experts' slots begin and how many groups of columns end before the next expert, kept where
/// it can be read again and again.
struct ColumnGroups {
  int first_slot[kMostExperts + 1];
  int group_end[kMostExperts];
};

/// By all threads of a block.
__device__ inline void read_column_groups(const Product& p, const DecodeLayout& layout,
                                          ColumnGroups& column_groups) {
  const int experts = p.groups.num_experts;
  for (int e = threadIdx.x; e <= experts; e += blockDim.x) {
    column_groups.first_slot[e] = p.groups.first_slot[e];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    int before = 0;
    for (int first = 0; first < experts; first += 32) {
      const int e = first + threadIdx.x;
      const int slots =
          e < experts ? column_groups.first_slot[e + 1] - column_groups.first_slot[e] : 0;
      int groups = (slots + layout.columns_per_group - 1) / layout.columns_per_group;
#pragma unroll
      for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_up_sync(0xFFFFFFFF, groups, offset);
        if (static_cast<int>(threadIdx.x) >= offset) groups += other;
      }
      if (e < experts) column_groups.group_end[e] = before + groups;
      before += __shfl_sync(0xFFFFFFFF, groups, 31);
    }
  }
  __syncthreads();
}

/// A group's columns, and its first tile.
__device__ __forceinline__ DecodeItem locate(const Product& p, const DecodeLayout& layout,
                                             const ColumnGroups& column_groups, int group) {
  DecodeItem item{.group = group};
  int first = item.group * layout.columns_per_group;
  int end = static_cast<int>(p.num_columns);
  if (p.groups.num_experts > 0) {
    while (column_groups.group_end[item.expert] <= item.group) ++item.expert;
    const int before = item.expert == 0 ? 0 : column_groups.group_end[item.expert - 1];
    first =
        column_groups.first_slot[item.expert] + (item.group - before) * layout.columns_per_group;
    end = column_groups.first_slot[item.expert + 1];
  }
  item.first_column = first;
  item.num_columns = min(layout.columns_per_group, end - first);
  return item;
}

/// By all threads of a block, several loads of each under way.
template <int kThreads>
__device__ __forceinline__ void stage_x(const Product& p, const DecodeLayout& layout,
                                        const DecodeItem& item, std::uint8_t* x) {
  const int pieces = layout.col_blocks * (kBlockCols * 2 / 16);
#pragma unroll 4
  for (int i = threadIdx.x; i < item.num_columns * pieces; i += kThreads) {
    const int column = i / pieces, piece = i % pieces;
    const int slot = item.first_column + column;
    const std::int64_t row = p.groups.slot_token != nullptr ? p.groups.slot_token[slot] : slot;
    *reinterpret_cast<uint4*>(x + column * layout.x_row_bytes + piece * 16) =
        *reinterpret_cast<const uint4*>(p.x + row * p.x_stride + piece * 8);
  }
}

constexpr int kHalfBlockBytes = kBlockCols / 2 * 2;  // 32 columns of x: what one ldmatrix brings

/// Where a lane's ldmatrix finds its rows of x, a tile of eight columns after the other. For a
/// column that is not there it takes the first: nobody asks for that sum.
template <int kTokenTiles>
struct XRows {
  std::uint32_t row[kTokenTiles];

  __device__ __forceinline__ void set(const DecodeLayout& layout, const DecodeItem& item,
                                      std::uint32_t x) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n) {
      const int column = n * 8 + lane % 8;
      row[n] = x + (column < item.num_columns ? column : 0) * layout.x_row_bytes + lane / 8 * 16;
    }
  }
  __device__ __forceinline__ std::uint32_t at(int n, int block) const {
    return row[n] + block * 2 * kHalfBlockBytes;
  }
};

}  // namespace gauntlet::kernels::cuda::inline product
