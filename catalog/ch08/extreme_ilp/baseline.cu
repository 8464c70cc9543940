// As many blocks as fit walk the array, at full occupancy: 2048 threads per SM, each with one load
// in flight, since a store may change what the next load reads.
#include <cuda_runtime.h>

#include <algorithm>

#include "catalog/ch08/extreme_ilp/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch08::extreme_ilp::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 1;
constexpr int kTile = kThreads * kInFlight;
static_assert(2048 % kTile == 0, "count is a multiple of 2048, so every tile is full");

__global__ void scale(Params p) {
  const std::int64_t tiles = p.count / kTile;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t i = tile * kTile + threadIdx.x;
    float word[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) word[k] = p.in[i + k * kThreads];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) p.out[i + k * kThreads] = kScale * word[k];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  int blocks_per_sm = 0;
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, scale, kThreads, 0));
  const std::int64_t resident = std::int64_t{blocks_per_sm} * cuda.num_sms;
  const auto blocks = static_cast<unsigned>(std::min(p.count / kTile, resident));
  return {[p, blocks, stream = cuda.stream] {
            scale<<<blocks, kThreads, 0, stream>>>(p);
            cuda_check(cudaGetLastError());
          },
          {{"resident_threads", blocks_per_sm * kThreads}}};
}

}  // namespace gauntlet::ch08::extreme_ilp::cuda
