// A kernel per step: its end is the barrier that the next step needs.
#include <cuda_runtime.h>

#include "catalog/ch10/cooperative_persistent/pair.h"
#include "catalog/ch10/cooperative_persistent/step.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch10::cooperative_persistent::cuda {
namespace {

__global__ void __launch_bounds__(kThreads) take_step(Params p, std::int64_t step) {
  const int thread = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  relax(p, step, thread, static_cast<int>(gridDim.x) * kThreads);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto blocks = static_cast<unsigned>((p.rows * p.columns + kThreads - 1) / kThreads);
  return [p, blocks, stream = cuda.stream] {
    for (std::int64_t step = 0; step < p.steps; ++step) {
      take_step<<<blocks, kThreads, 0, stream>>>(p, step);
    }
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::cooperative_persistent::cuda
