// Plain loads: `out` might overlap the table, so each lookup waits behind the store of the one
// before.
#include <cuda_runtime.h>

#include "catalog/ch07/readonly_lookup/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::readonly_lookup::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    look_up(const float* table, const std::int32_t* index, float* out, std::int64_t lookups) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < lookups; i += step) {
    out[i] = table[index[i]];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const int blocks = cuda.num_sms * (cuda.max_threads_per_sm / kThreads);
  return [p, blocks, stream = cuda.stream] {
    look_up<<<blocks, kThreads, 0, stream>>>(p.table, p.index, p.out, p.lookups);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::readonly_lookup::cuda
