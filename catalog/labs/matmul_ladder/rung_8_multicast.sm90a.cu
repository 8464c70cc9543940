// Clusters of two blocks with the same columns: each asks for half of their tiles of B and has it
// delivered to both, so that L2 is read for 24 KiB per block and stage instead of 32.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder/lab.h"
#include "catalog/labs/matmul_ladder/tile_maps.h"
#include "catalog/labs/matmul_ladder/warpgroup_tile.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/cluster.cuh"
#include "ptx/fence.cuh"
#include "ptx/multicast.cuh"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::labs::matmul_ladder::cuda {
namespace {

constexpr int kConsumers = 2;  // warpgroups that multiply; one more loads
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kTileRows = 2 * kGroupRows;  // of a warpgroup
constexpr int kTileColumns = 128;
constexpr int kRun = 4;                               // tiles of a block, below each other
constexpr int kBlocks = 2;                            // of a cluster
constexpr int kPartColumns = kTileColumns / kBlocks;  // that a block asks for
constexpr int kStages = 6;

struct Stage {
  alignas(1024) Bf16 a[kTileRows * kDepth];
  alignas(1024) Bf16 b[kTileColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
  std::uint64_t full[kStages];   // barriers: a stage has arrived
  std::uint64_t empty[kStages];  // all who read it are done, in both blocks
  std::uint64_t go[kConsumers];  // the other warpgroup has started all products of its tile
};
static_assert(sizeof(Ring) <= 227 * 1024);

__global__ void __launch_bounds__(kThreads, 1)
    multiply(Params p, const __grid_constant__ CUtensorMap a_map,
             const __grid_constant__ CUtensorMap b_map) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto& ring = *reinterpret_cast<Ring*>(ring_bytes);
  const int group = static_cast<int>(threadIdx.x) / 128;
  const int rank = static_cast<int>(ptx::cluster_rank());
  const int first_row = static_cast<int>(blockIdx.x) * kRun * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  const int steps = p.k / kDepth;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    // Of the warps that read a stage, in both blocks.
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, kBlocks * 4);
    for (std::uint64_t& barrier : ring.go) ptx::mbarrier_init(barrier, 4);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  ptx::cluster_arrive();  // nobody writes to a block whose barriers are not there
  ptx::cluster_wait();

  RingPlace<kStages> place;
  if (group == kConsumers) {
    if (threadIdx.x % 128 == 0) {
      for (int row = first_row; row < first_row + kRun * kTileRows; row += kTileRows) {
        for (int step = 0; step < steps; ++step, place.advance()) {
          Stage& stage = ring.stages[place.stage];
          std::uint64_t& full = ring.full[place.stage];
          // The first time round nobody has to have read the stage.
          wait_for(ring.empty[place.stage], place.parity ^ 1);
          ptx::mbarrier_arrive_expect_tx(full, sizeof(Stage));
          const int k = step * kDepth, part = rank * kPartColumns;
          ptx::tensor_load_2d(stage.a, a_map, {.column = k, .row = row}, full);
          ptx::tensor_load_2d_multicast(stage.b + part * kDepth, b_map,
                                        {.column = k, .row = first_column + part}, full, 0b11);
        }
      }
    }
  } else {
    const std::uint32_t lane = threadIdx.x % 32;
    const auto release = [&](int stage) {
      if (lane < kBlocks) ptx::mbarrier_arrive_at(ring.empty[stage], lane);
    };
    // The ring has the other warpgroup's tiles in between. A parity tells two neighbouring rounds
    // of the ring apart and no more, so a warpgroup must not ask for its stages before the other
    // has met all of its own.
    place.skip(group * steps);
    for (int tile = group; tile < kRun; tile += kConsumers, place.skip(steps)) {
      wait_for(ring.go[group], (tile / kConsumers % 2) ^ (group == 0 ? 1 : 0));
      float above[64], below[64];
      int before = 0;
      for (int step = 0; step < steps; ++step, place.advance()) {
        wait_for(ring.full[place.stage], place.parity);
        const Stage& stage = ring.stages[place.stage];
        ptx::wgmma_fence();
        start_product(above, stage.a, stage.b, step > 0);
        start_product(below, stage.a + kGroupRows * kDepth, stage.b, step > 0);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<1>();  // the products of the step before are done
        if (step > 0) release(before);
        before = place.stage;
      }
      if (lane == 0) ptx::mbarrier_arrive(ring.go[kConsumers - 1 - group]);
      ptx::wgmma_wait_group<0>();
      release(before);
      Bf16* c = p.c + std::int64_t{first_row + tile * kTileRows} * p.n + first_column;
      store_sums(above, c, p.n);
      store_sums(below, c + std::int64_t{kGroupRows} * p.n, p.n);
    }
  }
  __syncwarp();
  ptx::cluster_arrive();  // a block's shared memory must outlive what others write to it
  ptx::cluster_wait();
}

}  // namespace

lab::Side multicast(const Params& p, const lab::Cuda& cuda) {
  CUtensorMap a_map, b_map;
  describe(p.a, p.m, p.k, kTileRows, a_map);
  describe(p.b, p.n, p.k, kPartColumns, b_map);
  cuda_check(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, stream = cuda.stream] {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {.x = kBlocks, .y = 1, .z = 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(p.m / (kRun * kTileRows), p.n / kTileColumns);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = sizeof(Ring);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&config, multiply, p, a_map, b_map));
  };
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
