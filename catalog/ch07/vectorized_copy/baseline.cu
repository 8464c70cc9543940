// A grid-stride loop over floats: a warp's load asks for 128 bytes.
#include <cuda_runtime.h>

#include "catalog/ch07/vectorized_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/side.h"

namespace gauntlet::ch07::vectorized_copy::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads, 2048 / kThreads) copy_floats(Params p) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = thread; i < p.count; i += threads) p.out[i] = p.in[i];
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  // As many threads as the GPU holds at once.
  const auto blocks = static_cast<unsigned>(cuda.num_sms * (cuda.max_threads_per_sm / kThreads));
  return [p, blocks, stream = cuda.stream] {
    for (std::int64_t pass = 0; pass < p.passes; ++pass) {
      copy_floats<<<blocks, kThreads, 0, stream>>>(p);
      cuda_check(cudaGetLastError());
    }
  };
}

}  // namespace gauntlet::ch07::vectorized_copy::cuda
