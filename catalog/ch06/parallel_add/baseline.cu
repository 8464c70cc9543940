// The loop of a CPU program inside a kernel: one thread of one warp.
#include <cuda_runtime.h>

#include "catalog/ch06/parallel_add/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch06::parallel_add::cuda {
namespace {

__global__ void add(Params p) {
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = first; i < p.count; i += step) p.sum[i] = p.a[i] + p.b[i];
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    add<<<1, 1, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch06::parallel_add::cuda
