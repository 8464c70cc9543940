// One warp per block, as nobody would for long: a million blocks have to be started, and the limit
// of 32 blocks per SM caps it at 32 of its 64 warps.
#include <cuda_runtime.h>

#include "catalog/ch08/occupancy_block_size/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch08::occupancy_block_size::cuda {
namespace {

__global__ void scale_add(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < p.count) p.out[i] = fmaf(kScale, p.x[i], p.y[i]);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const int threads = 32;
  int blocks_per_sm = 0;
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, scale_add, threads, 0));
  return {[p, threads, stream = cuda.stream] {
            const auto blocks = static_cast<unsigned>((p.count + threads - 1) / threads);
            scale_add<<<blocks, threads, 0, stream>>>(p);
            cuda_check(cudaGetLastError());
          },
          {{"block_threads", threads}, {"resident_warps", blocks_per_sm * threads / 32}}};
}

}  // namespace gauntlet::ch08::occupancy_block_size::cuda
