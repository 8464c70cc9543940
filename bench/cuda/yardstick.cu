#include "bench/cuda/yardstick.h"
#include "kernels/cuda/launch.cuh"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::bench {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kReadBlocks = 2048;

__global__ void nothing() {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
}

__global__ void __launch_bounds__(kThreads)
    read_all(const uint4* data, std::int64_t vectors, std::uint32_t* sink) {
  std::uint32_t seen = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < vectors;
       i += std::int64_t{gridDim.x} * kThreads) {
    const uint4 v = data[i];
    seen |= v.x | v.y | v.z | v.w;
  }
  // The buffer holds zeros; the compiler does not know.
  if (seen != 0) *sink = seen;
}

}  // namespace

void launch_nothing(const kernels::cuda::Launch& how) {
  kernels::cuda::launch(nothing, {.grid = dim3(1), .block = dim3(32)}, how);
}

void read_through(const void* data, std::int64_t bytes, std::uint32_t* sink,
                  const kernels::cuda::Launch& how) {
  kernels::cuda::launch(read_all, {.grid = dim3(kReadBlocks), .block = dim3(kThreads)}, how,
                        static_cast<const uint4*>(data),
                        bytes / static_cast<std::int64_t>(sizeof(uint4)), sink);
}

}  // namespace gauntlet::bench
