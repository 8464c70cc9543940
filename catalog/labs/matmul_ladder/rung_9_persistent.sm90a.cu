// Blocks that stay: a cluster goes from tile to tile in an order that keeps what all of them read
// in L2, loads the next tile while it stores this one, and stores by tensor copies.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "catalog/labs/matmul_ladder/lab.h"
#include "catalog/labs/matmul_ladder/tile_maps.h"
#include "catalog/labs/matmul_ladder/tile_order.h"
#include "catalog/labs/matmul_ladder/warpgroup_tile.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/cluster.cuh"
#include "ptx/fence.cuh"
#include "ptx/multicast.cuh"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::labs::matmul_ladder::cuda {
namespace {

constexpr int kConsumers = 2;  // warpgroups that multiply; one more loads
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kTileRows = kConsumers * kGroupRows;
constexpr int kTileColumns = 256;
constexpr int kBlocks = 2;  // of a cluster, below each other: they share columns of B
constexpr int kPartColumns = kTileColumns / kBlocks;  // that a block asks for
constexpr int kStages = 4;

struct Stage {
  alignas(1024) Bf16 a[kTileRows * kDepth];
  alignas(1024) Bf16 b[kTileColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
  alignas(1024) unsigned char boxes[4 * kConsumers][kBoxes][kBoxBytes];
  std::uint64_t full[kStages];   // barriers: a stage has arrived
  std::uint64_t empty[kStages];  // all who read it are done, in both blocks
};
static_assert(sizeof(Ring) <= 227 * 1024);

__global__ void __launch_bounds__(kThreads, 1)
    multiply(Params p, const __grid_constant__ CUtensorMap a_map,
             const __grid_constant__ CUtensorMap b_map, const __grid_constant__ CUtensorMap c_map) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto& ring = *reinterpret_cast<Ring*>(ring_bytes);
  const int warp = static_cast<int>(threadIdx.x) / 32, group = warp / 4;
  const int rank = static_cast<int>(ptx::cluster_rank());
  const int row_tiles = p.m / (kBlocks * kTileRows), column_tiles = p.n / kTileColumns;
  const int tiles = row_tiles * column_tiles, steps = p.k / kDepth;
  const int first_tile = static_cast<int>(blockIdx.x) / kBlocks;
  const int clusters = static_cast<int>(gridDim.x) / kBlocks;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, kBlocks * 4 * kConsumers);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  ptx::cluster_arrive();  // nobody writes to a block whose barriers are not there
  ptx::cluster_wait();

  const auto origin_of = [&](int tile) {
    const TilePlace at = tile_in_groups(tile, row_tiles, column_tiles);
    return ptx::TileOrigin{.column = at.column * kTileColumns,
                           .row = (at.row * kBlocks + rank) * kTileRows};
  };
  RingPlace<kStages> place;
  if (group == kConsumers) {
    if (threadIdx.x % 128 == 0) {
      for (int tile = first_tile; tile < tiles; tile += clusters) {
        const ptx::TileOrigin at = origin_of(tile);
        for (int step = 0; step < steps; ++step, place.advance()) {
          Stage& stage = ring.stages[place.stage];
          std::uint64_t& full = ring.full[place.stage];
          // The first time round nobody has to have read the stage.
          wait_for(ring.empty[place.stage], place.parity ^ 1);
          ptx::mbarrier_arrive_expect_tx(full, sizeof(Stage));
          const int k = step * kDepth, part = rank * kPartColumns;
          ptx::tensor_load_2d(stage.a, a_map, {.column = k, .row = at.row}, full);
          ptx::tensor_load_2d_multicast(stage.b + part * kDepth, b_map,
                                        {.column = k, .row = at.column + part}, full, 0b11);
        }
      }
    }
  } else {
    const auto release = [&](int stage) {
      const std::uint32_t lane = threadIdx.x % 32;
      if (lane < kBlocks) ptx::mbarrier_arrive_at(ring.empty[stage], lane);
    };
    float sums[128];
    for (int tile = first_tile; tile < tiles; tile += clusters) {
      int before = 0;
      for (int step = 0; step < steps; ++step, place.advance()) {
        wait_for(ring.full[place.stage], place.parity);
        const Stage& stage = ring.stages[place.stage];
        ptx::wgmma_fence();
        start_product(sums, stage.a + group * kGroupRows * kDepth, stage.b, step > 0);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<1>();  // the products of the step before are done
        if (step > 0) release(before);
        before = place.stage;
      }
      ptx::wgmma_wait_group<0>();
      release(before);
      const ptx::TileOrigin at = origin_of(tile);
      store_by_copies(sums, ring.boxes[warp], c_map,
                      {.column = at.column, .row = at.row + warp * kBoxRows});
    }
    if (threadIdx.x % 32 == 0) ptx::bulk_wait_group_read<0>();
  }
  __syncwarp();
  ptx::cluster_arrive();  // a block's shared memory must outlive what others write to it
  ptx::cluster_wait();
}

}  // namespace

lab::Side persistent(const Params& p, const lab::Cuda& cuda) {
  CUtensorMap a_map, b_map, c_map;
  describe(p.a, p.m, p.k, kTileRows, a_map);
  describe(p.b, p.n, p.k, kPartColumns, b_map);
  describe(p.c, p.m, p.n, kBoxRows, c_map);
  const int tiles = p.m / kTileRows * (p.n / kTileColumns);
  const auto blocks = static_cast<unsigned>(std::min(cuda.num_sms / kBlocks * kBlocks, tiles));
  cuda_check(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, c_map, blocks, stream = cuda.stream] {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {.x = kBlocks, .y = 1, .z = 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = sizeof(Ring);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&config, multiply, p, a_map, b_map, c_map));
  };
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
