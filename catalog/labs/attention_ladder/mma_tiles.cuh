// Tiles of bf16 in shared memory and products of them by a warp's mma.sync, as the rungs without
// wgmma use them: a warp has 16 queries, a block 128.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

#include "core/narrow_floats.h"
#include "ptx/cp_async.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::labs::attention_ladder::cuda {

inline constexpr int kWarps = 8;
inline constexpr int kTileThreads = 32 * kWarps;
inline constexpr int kTileQueries = 16 * kWarps;
inline constexpr int kTileKeys = 64;

/// Rows of kColumns, whose 16-byte pieces trade places so that eight rows of a piece lie in
/// different banks.
template <int kRows, int kColumns>
struct Tile {
  static constexpr int kPieces = kColumns / 8;
  static_assert(kPieces % 8 == 0);
  alignas(128) Bf16 words[kRows * kColumns];

  __device__ __forceinline__ Bf16* piece(int row, int piece) {
    return words + row * kColumns + (piece ^ row % 8) * 8;
  }

  /// Starts copies of rows that lie `pitch` apart; the block closes their group.
  __device__ __forceinline__ void load(const Bf16* from, std::int64_t pitch = kColumns) {
    static_assert(kRows * kPieces % kTileThreads == 0);
#pragma unroll
    for (int i = 0; i < kRows * kPieces / kTileThreads; ++i) {
      const int at = i * kTileThreads + static_cast<int>(threadIdx.x);
      const int row = at / kPieces, column = at % kPieces;
      ptx::cp_async_16(piece(row, column), from + row * pitch + column * 8);
    }
  }
};

__device__ __forceinline__ std::uint32_t pack_pair(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(both);
}

/// The A operand of 16 rows from `row` and 16 columns from `column`.
template <int kRows, int kColumns>
__device__ __forceinline__ void load_a(std::uint32_t (&a)[4], Tile<kRows, kColumns>& tile, int row,
                                       int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ptx::ldmatrix_x4(a, tile.piece(row + lane % 16, column / 8 + lane / 16));
}

/// sums += a·(kCount rows of the tile)ᵀ over 16 columns from `column`.
template <int kCount, int kRows, int kColumns>
__device__ __forceinline__ void multiply_rows(float (&sums)[kCount / 8][4],
                                              const std::uint32_t (&a)[4],
                                              Tile<kRows, kColumns>& tile, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < kCount / 16; ++n) {
    std::uint32_t b[4];
    ptx::ldmatrix_x4(b, tile.piece(n * 16 + lane / 16 * 8 + lane % 8, column / 8 + lane / 8 % 2));
    ptx::mma_m16n8k16_bf16(sums[2 * n], a, {b[0], b[1]});
    ptx::mma_m16n8k16_bf16(sums[2 * n + 1], a, {b[2], b[3]});
  }
}

/// sums += a·(16 rows from `row` of the tile).
template <int kRows, int kColumns>
__device__ __forceinline__ void multiply_columns(float (&sums)[kColumns / 8][4],
                                                 const std::uint32_t (&a)[4],
                                                 Tile<kRows, kColumns>& tile, int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int n = 0; n < kColumns / 16; ++n) {
    std::uint32_t b[4];
    ptx::ldmatrix_x4_trans(b, tile.piece(row + lane % 16, n * 2 + lane / 16));
    ptx::mma_m16n8k16_bf16(sums[2 * n], a, {b[0], b[1]});
    ptx::mma_m16n8k16_bf16(sums[2 * n + 1], a, {b[2], b[3]});
  }
}

/// A warp's 16 rows of sums, times one factor for each of a lane's two rows; `out` is its first
/// row.
template <int kColumns>
__device__ __forceinline__ void store_rows(Bf16* out, const float (&sums)[kColumns / 8][4],
                                           const float (&by)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    auto* to = reinterpret_cast<std::uint32_t*>(out + (lane / 4 + 8 * row) * kColumns) + lane % 4;
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      to[4 * n] = pack_pair(sums[n][2 * row] * by[row], sums[n][2 * row + 1] * by[row]);
    }
  }
}

}  // namespace gauntlet::labs::attention_ladder::cuda
