// The same block per row: the lanes of a warp add up by shuffles, and one word per warp goes
// through shared memory.
#include <cuda_runtime.h>

#include "catalog/ch09/warp_shuffle_reduction/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::warp_shuffle_reduction::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

template <int kLanes>
__device__ __forceinline__ float sum_lanes(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(~0u, value, offset);
  }
  return value;
}

__global__ void __launch_bounds__(kThreads) sum_rows(Params p) {
  __shared__ float partial[kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const float* in = p.in + std::int64_t{blockIdx.x} * p.columns;
  float sum = 0;
  for (std::int64_t i = 4 * thread; i < p.columns; i += 4 * kThreads) {
    const float4 x = *reinterpret_cast<const float4*>(in + i);
    sum += (x.x + x.y) + (x.z + x.w);
  }
  sum = sum_lanes<32>(sum);
  if (thread % 32 == 0) partial[thread / 32] = sum;
  __syncthreads();
  if (thread >= 32) return;
  sum = sum_lanes<kWarps>(partial[thread % kWarps]);
  if (thread == 0) p.out[blockIdx.x] = sum;
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    sum_rows<<<static_cast<unsigned>(p.rows), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::warp_shuffle_reduction::cuda
