// A thread for every sequence: the lanes of a warp wait for the longest of theirs.
#include <cuda_runtime.h>

#include "catalog/ch12/work_queue/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch12::work_queue::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) continue_all(Params p) {
  const std::int64_t item = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (item < p.items) p.out[item] = continue_sequence(p, item);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.items + kThreads - 1) / kThreads);
    continue_all<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch12::work_queue::cuda
