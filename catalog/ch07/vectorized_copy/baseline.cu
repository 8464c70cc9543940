// A thread per float: a warp's load asks for 128 bytes.
#include <cuda_runtime.h>

#include "catalog/ch07/vectorized_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::vectorized_copy::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) copy_floats(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < p.count) p.out[i] = p.in[i];
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.count + kThreads - 1) / kThreads);
    for (std::int64_t pass = 0; pass < p.passes; ++pass) {
      copy_floats<<<blocks, kThreads, 0, stream>>>(p);
      cuda_check(cudaGetLastError());
    }
  };
}

}  // namespace gauntlet::ch07::vectorized_copy::cuda
