// A warp's part of a product with mma.sync, from tiles of 128-byte rows in shared memory whose
// 16-byte chunks are swizzled: what the rungs mma, cp_async and tma have in common.
#pragma once
#include <cstdint>

#include "catalog/labs/matmul_ladder/bf16_pairs.cuh"
#include "catalog/labs/matmul_ladder/lab.h"
#include "ptx/address.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::labs::matmul_ladder::cuda {

inline constexpr int kDepth = 64;     // of a tile, 128 bytes
inline constexpr int kWarpRows = 64;  // of C
inline constexpr int kWarpColumns = 32;

/// Where eight elements lie, in elements from the tile's start: the chunks of a row change places
/// with the row's number, so that eight rows cover all banks. Tensor maps do the same.
__device__ __forceinline__ int swizzled(int row, int chunk) {
  return row * kDepth + (chunk ^ (row % 8)) * 8;
}

class WarpTile {
 public:
  __device__ WarpTile(int first_row, int first_column)
      : lane_(static_cast<int>(threadIdx.x) % 32), row_(first_row), column_(first_column) {}

  /// sums += the warp's rows of a by its columns of b.
  __device__ __forceinline__ void multiply(const Bf16* a, const Bf16* b) {
    // Matrices 0 to 3 of ldmatrix are 8 rows of 8 elements: of A rows, rows + 8, and both 8
    // elements further; of B a fragment's two halves of K, then those of its neighbour.
    const std::uint32_t from_a = ptx::shared_address(a + (row_ + lane_ % 16) * kDepth);
    const std::uint32_t from_b =
        ptx::shared_address(b + (column_ + lane_ / 16 * 8 + lane_ % 8) * kDepth);
    const int chunk_a = lane_ / 16, chunk_b = lane_ / 8 % 2;
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step) {
      std::uint32_t of_a[kRows][4], of_b[kPairs][4];
      const std::uint32_t at_a = from_a + ((2 * step + chunk_a) ^ (lane_ % 8)) * 16;
      const std::uint32_t at_b = from_b + ((2 * step + chunk_b) ^ (lane_ % 8)) * 16;
#pragma unroll
      for (int i = 0; i < kRows; ++i) ptx::ldmatrix_x4(of_a[i], at_a + i * 16 * kRowBytes);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) ptx::ldmatrix_x4(of_b[j], at_b + j * 16 * kRowBytes);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < 2 * kPairs; ++j) {
          const std::uint32_t halves[2] = {of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]};
          ptx::mma_m16n8k16_bf16(sums_[i][j], of_a[i], halves);
        }
      }
    }
  }

  /// To the block's tile of C.
  __device__ __forceinline__ void store(Bf16* c, int pitch) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kPairs; ++j) {
        const float(&s)[4] = sums_[i][j];
        Bf16* to =
            c + std::int64_t{row_ + i * 16 + lane_ / 4} * pitch + column_ + j * 8 + lane_ % 4 * 2;
        *reinterpret_cast<std::uint32_t*>(to) = rounded_pair(s[0], s[1]);
        *reinterpret_cast<std::uint32_t*>(to + std::int64_t{8} * pitch) = rounded_pair(s[2], s[3]);
      }
    }
  }

 private:
  static constexpr int kRowBytes = kDepth * 2;
  static constexpr int kRows = kWarpRows / 16;      // fragments
  static constexpr int kPairs = kWarpColumns / 16;  // of fragments of 8 columns
  const int lane_, row_, column_;
  float sums_[kRows][2 * kPairs][4] = {};
};

}  // namespace gauntlet::labs::matmul_ladder::cuda
