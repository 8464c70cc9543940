// One thread per block drives bulk copies through a ring of shared-memory tiles: the data never
// passes through registers, and loads run ahead of stores.
#include <cuda_runtime.h>

#include <algorithm>

#include "catalog/ch07/tma_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/side.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"

namespace gauntlet::ch07::tma_copy::cuda {
namespace {

constexpr int kTileBytes = 8 << 10;
constexpr int kLoadsAhead = 8;
constexpr int kStoresBehind = 4;  // still reading their tile when the next load is issued
constexpr int kStages = kLoadsAhead + kStoresBehind;
constexpr int kBlocksPerSm = 2;

struct Ring {
  alignas(128) unsigned char tiles[kStages][kTileBytes];
  std::uint64_t full[kStages];  // barriers: the tile has arrived
};
static_assert(kTileBytes % 128 == 0);
// Of 228 KiB per SM, each block has 1 KiB reserved.
static_assert(kBlocksPerSm * (sizeof(Ring) + 1024) <= 228 << 10);

__global__ void __launch_bounds__(1) copy_tiles(Params p) {
  extern __shared__ __align__(128) unsigned char shared[];
  Ring& ring = *reinterpret_cast<Ring*>(shared);
  const auto* in = reinterpret_cast<const unsigned char*>(p.in);
  auto* out = reinterpret_cast<unsigned char*>(p.out);
  const std::int64_t bytes = p.count * std::int64_t{sizeof(float)};
  const std::int64_t tiles = (bytes + kTileBytes - 1) / kTileBytes;
  // Blocks take tiles in turn; this block's tiles are numbered 0 .. own_tiles - 1.
  const int own_tiles = static_cast<int>((tiles - blockIdx.x + gridDim.x - 1) / gridDim.x);

  const auto offset_of = [&](int tile) {
    return (std::int64_t{tile} * gridDim.x + blockIdx.x) * kTileBytes;
  };
  const auto bytes_of = [&](int tile) {
    return static_cast<std::uint32_t>(min(std::int64_t{kTileBytes}, bytes - offset_of(tile)));
  };
  const auto load = [&](int tile) {
    const int stage = tile % kStages;
    ptx::mbarrier_arrive_expect_tx(ring.full[stage], bytes_of(tile));
    ptx::bulk_load(ring.tiles[stage], in + offset_of(tile), bytes_of(tile), ring.full[stage]);
  };
  const auto store = [&](int tile) {
    const int stage = tile % kStages;
    const auto parity = static_cast<std::uint32_t>(tile / kStages % 2);
    while (!ptx::mbarrier_try_wait(ring.full[stage], parity)) {
    }
    ptx::bulk_store(out + offset_of(tile), ring.tiles[stage], bytes_of(tile));
    ptx::bulk_commit_group();
  };

  for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
  ptx::fence_mbarrier_init();
  for (int tile = 0; tile < min(kLoadsAhead, own_tiles); ++tile) load(tile);
  for (int tile = 0; tile < own_tiles; ++tile) {
    store(tile);
    if (tile + kLoadsAhead < own_tiles) {
      // The next load's stage was last read by store number tile - kStoresBehind.
      ptx::bulk_wait_group_read<kStoresBehind>();
      load(tile + kLoadsAhead);
    }
  }
  // Shared memory must outlive the stores that read it.
  ptx::bulk_wait_group_read<0>();
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  cuda_check(
      cudaFuncSetAttribute(copy_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Ring)));
  const std::int64_t tiles = (p.count * std::int64_t{sizeof(float)} + kTileBytes - 1) / kTileBytes;
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>(tiles, cuda.num_sms * kBlocksPerSm));
  return [p, blocks, stream = cuda.stream] {
    copy_tiles<<<blocks, 1, sizeof(Ring), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::tma_copy::cuda
