// Products with MXFP4 weights by scaling sums of 32 columns instead of the weights.
#pragma once
#include "kernels/cuda/product/decode_schedule.cuh"
#include "kernels/cuda/product/dequantize_fp4.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::kernels::cuda::inline product {

/// Spread but not scaled, an FP4 value is 2^-126 of itself. The tokens make up for half of that, so
/// that no product is too small for a float; what is too much then, with the stored scales, is
/// taken off at the end.
constexpr std::uint32_t kScaleUpPair = 0x5F805F80u;  // 2^64 in bf16, twice
constexpr float kUnscale = 0x1p-64f;

/// By so many threads, several loads of each under way. Warps stay whole: lanes past the end repeat
/// the last piece.
template <int kThreads>
__device__ __forceinline__ void stage_scaled_x(const Product& p, const DecodeLayout& layout,
                                               const DecodeItem& item, std::uint8_t* x) {
  const int pieces = layout.col_blocks * (kBlockCols * 2 / 16), all = item.num_columns * pieces;
  const int lane = threadIdx.x % 32;
#pragma unroll 2
  for (int first = static_cast<int>(threadIdx.x) - lane; first < all; first += kThreads) {
    const int i = min(first + lane, all - 1);
    const int column = i / pieces, piece = i % pieces;
    const int slot = item.first_column + column;
    const std::int64_t row = p.groups.slot_token != nullptr ? p.groups.slot_token[slot] : slot;
    uint4 v = *reinterpret_cast<const uint4*>(p.x + row * p.x_stride + piece * 8);
    v.x = multiply_pairs(v.x, kScaleUpPair), v.y = multiply_pairs(v.y, kScaleUpPair);
    v.z = multiply_pairs(v.z, kScaleUpPair), v.w = multiply_pairs(v.w, kScaleUpPair);
    *reinterpret_cast<uint4*>(x + column * layout.x_row_bytes + piece * 16) = v;
  }
}

/// 2^(byte - 127) of one of four stored scale bytes.
__device__ __forceinline__ float scale_of(std::uint32_t stored, int byte) {
  return __uint_as_float(__byte_perm(stored, 0, 0x4440 + byte) << 23);
}

/// Adds a block of 64 columns to the sums of a tile of 16 rows. `x_row` is where this lane finds
/// the block's columns of each token tile. Sums of 32 columns are scaled, which for one token tile
/// takes fewer instructions than to scale their weights.
template <int kTiles>
__device__ __forceinline__ void add_scaled_sums(const uint4& steps, std::uint32_t factors,
                                                const std::uint32_t (&x_row)[kTiles],
                                                float (&sums)[kTiles][4]) {
  const std::uint32_t step[4] = {steps.x, steps.y, steps.z, steps.w};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    std::uint32_t a[2][4];
    spread_word(step[2 * half], a[0]);
    spread_word(step[2 * half + 1], a[1]);
    const float upper = scale_of(factors, half), lower = scale_of(factors, 2 + half);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, x_row[n] + half * kHalfBlockBytes);
      float part[4] = {};
      ptx::mma_m16n8k16_bf16(part, a[0], {b[0], b[1]});
      ptx::mma_m16n8k16_bf16(part, a[1], {b[2], b[3]});
      sums[n][0] = fmaf(part[0], upper, sums[n][0]);
      sums[n][1] = fmaf(part[1], upper, sums[n][1]);
      sums[n][2] = fmaf(part[2], lower, sums[n][2]);
      sums[n][3] = fmaf(part[3], lower, sums[n][3]);
    }
  }
}

}  // namespace gauntlet::kernels::cuda::inline product
