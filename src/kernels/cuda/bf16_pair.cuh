// Two bf16 numbers in a register.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

namespace gauntlet::kernels::cuda {

__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

__device__ __forceinline__ float2 unpack_bf16(std::uint32_t pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xFFFF0000u)};
}

}  // namespace gauntlet::kernels::cuda
