// Sums over a block in a fixed order.
#pragma once

namespace gauntlet::kernels::cuda {

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFF, value, offset);
  }
  return value;
}

/// Every thread gets the sum. `partial` has one float per warp and is free after the next barrier.
template <int kThreads>
__device__ __forceinline__ float block_sum(float value, float* partial) {
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp) sum += partial[warp];
  return sum;
}

}  // namespace gauntlet::kernels::cuda
