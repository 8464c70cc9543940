// A thread per 4 KiB tile: the copy engine brings the tile to shared memory and takes it out again,
// and the data never passes through registers. Many small blocks per SM keep enough tiles in
// flight.
#include <cuda_runtime.h>

#include "catalog/ch07/tma_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"

namespace gauntlet::ch07::tma_copy::cuda {
namespace {

constexpr int kTileBytes = 4 << 10;

struct Tile {
  alignas(128) unsigned char bytes[kTileBytes];
  std::uint64_t full;  // barrier: the tile has arrived
};

__global__ void __launch_bounds__(32) copy_tiles(Params p) {
  __shared__ Tile tile;
  if (threadIdx.x != 0) return;
  const std::int64_t offset = std::int64_t{blockIdx.x} * kTileBytes;
  const auto size = static_cast<std::uint32_t>(
      min(std::int64_t{kTileBytes}, p.count * std::int64_t{sizeof(float)} - offset));

  ptx::mbarrier_init(tile.full, 1);
  ptx::fence_mbarrier_init();
  ptx::mbarrier_arrive_expect_tx(tile.full, size);
  ptx::bulk_load(tile.bytes, reinterpret_cast<const unsigned char*>(p.in) + offset, size,
                 tile.full);
  while (!ptx::mbarrier_try_wait(tile.full, 0)) {
  }
  ptx::bulk_store(reinterpret_cast<unsigned char*>(p.out) + offset, tile.bytes, size);
  ptx::bulk_commit_group();
  ptx::bulk_wait_group_read<0>();  // shared memory must outlive the store that reads it
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const std::int64_t bytes = p.count * std::int64_t{sizeof(float)};
    const auto blocks = static_cast<unsigned>((bytes + kTileBytes - 1) / kTileBytes);
    copy_tiles<<<blocks, 32, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::tma_copy::cuda
