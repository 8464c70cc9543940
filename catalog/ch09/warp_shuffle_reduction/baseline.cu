// A block per row: each thread adds up some words, and a tree in shared memory adds up the threads,
// half as many in each round.
#include <cuda_runtime.h>

#include "catalog/ch09/warp_shuffle_reduction/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::warp_shuffle_reduction::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) sum_rows(Params p) {
  __shared__ float partial[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const float* in = p.in + std::int64_t{blockIdx.x} * p.columns;
  float sum = 0;
  for (std::int64_t i = 4 * thread; i < p.columns; i += 4 * kThreads) {
    const float4 x = *reinterpret_cast<const float4*>(in + i);
    sum += (x.x + x.y) + (x.z + x.w);
  }
  partial[thread] = sum;
  __syncthreads();
#pragma unroll
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  if (thread == 0) p.out[blockIdx.x] = partial[0];
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    sum_rows<<<static_cast<unsigned>(p.rows), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::warp_shuffle_reduction::cuda
