// Two bf16 in a register, as loads bring them and stores take them.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

namespace gauntlet::labs::matmul_ladder::cuda {

__device__ __forceinline__ float lower(std::uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float upper(std::uint32_t pair) {
  return __uint_as_float(pair & 0xFFFF0000u);
}

/// Both rounded to the nearest.
__device__ __forceinline__ std::uint32_t rounded_pair(float lower, float upper) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(lower, upper);
  return std::uint32_t{__bfloat16_as_ushort(pair.y)} << 16 | __bfloat16_as_ushort(pair.x);
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
