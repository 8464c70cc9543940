// One block per row, one accumulator per thread. The compiler unrolls the loop, but every addition
// still waits for the one before and each round of loads for all of them.
#include <cuda_runtime.h>

#include "catalog/ch08/loop_unrolling/pair.h"
#include "core/cuda/check.h"
#include "lab/side.h"

namespace gauntlet::ch08::loop_unrolling::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void squared_norms(Params p) {
  __shared__ float partial[kWarps];
  const float* in = p.in + std::int64_t{blockIdx.x} * p.columns;
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < p.columns; i += kThreads) sum += in[i] * in[i];

  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = warp_sum(threadIdx.x < kWarps ? partial[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) p.out[blockIdx.x] = sum;
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, squared_norms));
  return {[p, stream = cuda.stream] {
            squared_norms<<<static_cast<unsigned>(p.rows), kThreads, 0, stream>>>(p);
            cuda_check(cudaGetLastError());
          },
          {{"registers", attributes.numRegs}}};
}

}  // namespace gauntlet::ch08::loop_unrolling::cuda
