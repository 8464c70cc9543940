// A block of weights from shared memory into the registers of wgmma's A operand, and the wgmma by
// width.
#pragma once
#include <cstdint>

#include "kernels/cuda/product/dequantize_fp4.cuh"
#include "kernels/cuda/product/fragments.h"
#include "ptx/wgmma_register_a.cuh"

namespace gauntlet::kernels::cuda::inline product {

/// A lane's weights of a block: for each step of 16 columns the registers of one wgmma.
inline constexpr int kSteps = kBlockCols / 16;
using Operands = std::uint32_t[kSteps][4];

template <WeightFormat kFormat>
__device__ __forceinline__ void load_operands(const std::uint8_t* block, Operands& a) {
  const int lane = static_cast<int>(threadIdx.x) % 32,
            tile = static_cast<int>(threadIdx.x) / 32 % 4;
  if constexpr (kFormat == WeightFormat::bf16) {
    const auto* from = reinterpret_cast<const uint4*>(block + tile * kBf16TileBytes) + lane;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint4 v = from[step * 32];
      a[step][0] = v.x;
      a[step][1] = v.y;
      a[step][2] = v.z;
      a[step][3] = v.w;
    }
  } else {
    const uint4 v = *reinterpret_cast<const uint4*>(block + tile * kMxfp4TileBytes + lane * 16);
    const auto scales = *reinterpret_cast<const std::uint32_t*>(
        block + 4 * kMxfp4TileBytes + tile * kMxfp4ScaleBytes + lane / 4 * 4);
    const std::uint32_t words[kSteps] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t upper = scale_pair(scales, half);
      const std::uint32_t lower = scale_pair(scales, 2 + half);
      dequantize_fp4(words[2 * half], upper, lower, a[2 * half]);
      dequantize_fp4(words[2 * half + 1], upper, lower, a[2 * half + 1]);
    }
  }
}

/// The same of half a block: 32 columns of MXFP4.
inline constexpr int kHalfSteps = kSteps / 2;
using HalfOperands = std::uint32_t[kHalfSteps][4];

__device__ __forceinline__ void load_half_operands(const std::uint8_t* block, int half,
                                                   HalfOperands& a) {
  const int lane = static_cast<int>(threadIdx.x) % 32,
            tile = static_cast<int>(threadIdx.x) / 32 % 4;
  const uint2 v = *reinterpret_cast<const uint2*>(block + tile * kMxfp4TileBytes + lane * 16 +
                                                  half * kHalfSteps * 4);
  const auto scales = *reinterpret_cast<const std::uint32_t*>(
      block + 4 * kMxfp4TileBytes + tile * kMxfp4ScaleBytes + lane / 4 * 4);
  const std::uint32_t upper = scale_pair(scales, half), lower = scale_pair(scales, 2 + half);
  dequantize_fp4(v.x, upper, lower, a[0]);
  dequantize_fp4(v.y, upper, lower, a[1]);
}

/// Adds the products of a step with `kWidth` tokens.
template <int kWidth>
__device__ __forceinline__ void multiply_step(float (&sums)[kWidth / 2],
                                              const std::uint32_t (&a)[4], std::uint64_t x) {
  if constexpr (kWidth == 16) ptx::wgmma_m64n16k16_bf16(sums, a, x, 1);
  if constexpr (kWidth == 32) ptx::wgmma_m64n32k16_bf16(sums, a, x, 1);
  if constexpr (kWidth == 48) ptx::wgmma_m64n48k16_bf16(sums, a, x, 1);
  if constexpr (kWidth == 64) ptx::wgmma_m64n64k16_bf16(sums, a, x, 1);
  if constexpr (kWidth == 96) ptx::wgmma_m64n96k16_bf16(sums, a, x, 1);
  if constexpr (kWidth == 128) ptx::wgmma_m64n128k16_bf16(sums, a, x, 1);
  if constexpr (kWidth == 256) ptx::wgmma_m64n256k16_bf16(sums, a, x, 1);
}

}  // namespace gauntlet::kernels::cuda::inline product
