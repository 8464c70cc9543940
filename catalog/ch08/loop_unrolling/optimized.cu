// The same blocks with eight accumulators per thread: eight loads are issued before the first is
// needed, and the additions do not wait for one another.
#include <cuda_runtime.h>

#include "catalog/ch08/loop_unrolling/pair.h"
#include "core/cuda/check.h"
#include "lab/side.h"

namespace gauntlet::ch08::loop_unrolling::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr int kAccumulators = 8;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void squared_norms(Params p) {
  __shared__ float partial[kWarps];
  const float* in = p.in + std::int64_t{blockIdx.x} * p.columns;
  float sums[kAccumulators] = {};
  for (std::int64_t i = threadIdx.x; i < p.columns; i += kThreads * kAccumulators) {
#pragma unroll
    for (int k = 0; k < kAccumulators; ++k) sums[k] += in[i + k * kThreads] * in[i + k * kThreads];
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kAccumulators; ++k) sum += sums[k];

  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = warp_sum(threadIdx.x < kWarps ? partial[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) p.out[blockIdx.x] = sum;
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, squared_norms));
  return {[p, stream = cuda.stream] {
            squared_norms<<<static_cast<unsigned>(p.rows), kThreads, 0, stream>>>(p);
            cuda_check(cudaGetLastError());
          },
          {{"registers", attributes.numRegs}}};
}

}  // namespace gauntlet::ch08::loop_unrolling::cuda
