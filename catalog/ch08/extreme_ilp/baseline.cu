// A thread per word and full occupancy: 2048 threads per SM, each with one load in flight.
#include <cuda_runtime.h>

#include "catalog/ch08/extreme_ilp/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch08::extreme_ilp::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void scale(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < p.count) p.out[i] = kScale * p.in[i];
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  int blocks_per_sm = 0;
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, scale, kThreads, 0));
  return {[p, stream = cuda.stream] {
            const auto blocks = static_cast<unsigned>((p.count + kThreads - 1) / kThreads);
            scale<<<blocks, kThreads, 0, stream>>>(p);
            cuda_check(cudaGetLastError());
          },
          {{"resident_threads", blocks_per_sm * kThreads}}};
}

}  // namespace gauntlet::ch08::extreme_ilp::cuda
