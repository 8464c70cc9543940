// Every thread loads its 33 inputs from global memory; neighbouring threads load almost the same
// ones again.
#include <cuda_runtime.h>

#include "catalog/ch06/shared_stencil/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch06::shared_stencil::cuda {
namespace {

constexpr int kThreads = 256;
static_assert(kRow % kThreads == 0, "blocks have no tail");

__global__ void filter(Params p) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads;
  const float* in = p.in + first + threadIdx.x;
  float sum = 0;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) sum = fmaf(weight(tap), in[tap], sum);
  p.out[first + threadIdx.x] = sum;
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    filter<<<static_cast<unsigned>(p.count / kThreads), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch06::shared_stencil::cuda
