// A block of weights from shared memory into the registers of wgmma's A operand, and the wgmma by
// width.
#pragma once
#include <cstdint>

#include "kernels/cuda/product/dequantize_fp4.cuh"
#include "kernels/cuda/product/fragments.h"
#include "ptx/shared_load.cuh"
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

/// A lane's words of kNumSteps steps (a block of MXFP4 or half of one) and its rows' scales, as
/// they are stored.
template <int kNumSteps>
struct PackedOperands {
  std::uint32_t words[kNumSteps];
  std::uint32_t scales;  // of {row, row, row + 8, row + 8}, halves of the block taking turns
};

/// `words` and `scales` are where this lane finds its first.
template <int kNumSteps>
__device__ __forceinline__ void load_packed(std::uint32_t words, std::uint32_t scales,
                                            PackedOperands<kNumSteps>& packed) {
  if constexpr (kNumSteps == kSteps) {
    const uint4 v = ptx::load_shared_16(words);
    packed.words[0] = v.x, packed.words[1] = v.y, packed.words[2] = v.z, packed.words[3] = v.w;
  } else {
    static_assert(kNumSteps == kSteps / 2);
    packed.words[0] = ptx::load_shared_4(words);
    packed.words[1] = ptx::load_shared_4(words + 4);
  }
  packed.scales = ptx::load_shared_4(scales);
}

/// `half`: which of a block, where kNumSteps is not all of it. Factors of a row and the row 8 below
/// are the halves of a register, which a multiplication takes for both of its own.
template <int kNumSteps>
__device__ __forceinline__ void dequantize(const PackedOperands<kNumSteps>& packed, int half,
                                           std::uint32_t (&a)[kNumSteps][4]) {
  constexpr int kHalfSteps = kSteps / 2;
#pragma unroll
  for (int h = 0; h < kNumSteps / kHalfSteps; ++h) {
    const bool second = kNumSteps == kSteps ? h == 1 : half == 1;
    const std::uint32_t both = (second ? packed.scales >> 1 : packed.scales << 7) & 0x7F807F80u;
    const auto factors = *reinterpret_cast<const __nv_bfloat162*>(&both);
    const __nv_bfloat162 upper = __low2bfloat162(factors), lower = __high2bfloat162(factors);
#pragma unroll
    for (int s = h * kHalfSteps; s < (h + 1) * kHalfSteps; ++s) {
      std::uint32_t spread[4];
      spread_word_by_products(packed.words[s], spread);
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const __nv_bfloat162 scaled = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&spread[r]),
                                              r % 2 == 0 ? upper : lower);
        a[s][r] = *reinterpret_cast<const std::uint32_t*>(&scaled);
      }
    }
  }
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
