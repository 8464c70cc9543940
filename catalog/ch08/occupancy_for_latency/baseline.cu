// A block for each SM, as a CPU gets a thread for each core: eight warps issue all of its loads.
#include <cuda_runtime.h>

#include "catalog/ch08/occupancy_for_latency/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch08::occupancy_for_latency::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void look_up(Params p) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < p.count; i += step) {
    p.out[i] = p.table[p.index[i]];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const int blocks_per_sm = 1;
  const auto blocks = static_cast<unsigned>(cuda.num_sms * blocks_per_sm);
  return {[p, blocks, stream = cuda.stream] {
            look_up<<<blocks, kThreads, 0, stream>>>(p);
            cuda_check(cudaGetLastError());
          },
          {{"resident_warps", blocks_per_sm * kThreads / 32}}};
}

}  // namespace gauntlet::ch08::occupancy_for_latency::cuda
