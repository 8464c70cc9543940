// One cooperative kernel, as many blocks as fit on the GPU: all of them meet between two steps.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "catalog/ch10/cooperative_persistent/pair.h"
#include "catalog/ch10/cooperative_persistent/step.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch10::cooperative_persistent::cuda {
namespace {

__global__ void __launch_bounds__(kThreads) take_steps(Params p) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int thread = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  const int threads = static_cast<int>(gridDim.x) * kThreads;
  for (std::int64_t step = 0; step < p.steps; ++step) {
    if (step > 0) grid.sync();
    relax(p, step, thread, threads);
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  int blocks_per_sm = 0;
  cuda_check(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, take_steps, kThreads, 0));
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(
      std::int64_t{blocks_per_sm} * cuda.num_sms, (p.rows * p.columns + kThreads - 1) / kThreads));
  return [p, blocks, stream = cuda.stream] {
    Params params = p;
    void* arguments[] = {&params};
    cuda_check(cudaLaunchCooperativeKernel(take_steps, dim3(blocks), dim3(kThreads), arguments, 0,
                                           stream));
  };
}

}  // namespace gauntlet::ch10::cooperative_persistent::cuda
