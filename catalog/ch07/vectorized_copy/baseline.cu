// A thread per float: a warp's load asks for 128 bytes.
#include <cuda_runtime.h>

#include "catalog/ch07/vectorized_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::vectorized_copy::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) copy_floats(Pass pass, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const std::int64_t at = i + pass.shift;
  pass.to[i] = pass.from[at < count ? at : at - count];
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.count + kThreads - 1) / kThreads);
    for (std::int64_t i = 0; i < p.passes; ++i) {
      copy_floats<<<blocks, kThreads, 0, stream>>>(pass_of(p, i), p.count);
      cuda_check(cudaGetLastError());
    }
  };
}

}  // namespace gauntlet::ch07::vectorized_copy::cuda
