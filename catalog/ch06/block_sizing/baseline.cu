// A round number of threads, which nobody who knows of warps would take: 100 is three warps and
// four lanes of a fourth.
#include <cuda_runtime.h>

#include "catalog/ch06/block_sizing/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch06::block_sizing::cuda {
namespace {

constexpr int kThreads = 100;

__global__ void evaluate(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= p.count) return;
  const float x = p.x[i];
  float sum = 1;
#pragma unroll 16
  for (int term = 1; term < p.terms; ++term) sum = fmaf(sum, x, 1.0f);
  p.out[i] = sum;
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.count + kThreads - 1) / kThreads);
    evaluate<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch06::block_sizing::cuda
