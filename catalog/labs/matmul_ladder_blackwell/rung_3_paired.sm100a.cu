// Two SMs together: each loads its own rows of A and half of the columns of B, and one instruction
// has both multiply all of them, 256 x 256 sums in two tensor memories.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder/tile_maps.h"
#include "catalog/labs/matmul_ladder_blackwell/lab.h"
#include "catalog/labs/matmul_ladder_blackwell/tensor_memory_rows.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/cluster.cuh"
#include "ptx/dynamic_shared.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tcgen05.cuh"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::labs::matmul_ladder_blackwell::cuda {
namespace {

constexpr int kSms = 2;
constexpr int kThreads = 128;   // a row of sums each; two of them also load and multiply
constexpr int kTileRows = 128;  // of a block
constexpr int kTileColumns = 256;
constexpr int kPartColumns = kTileColumns / kSms;  // of B, per block
constexpr int kDepth = 64;                         // 128 bytes, a row of the swizzle
constexpr int kStep = 16;                          // of K per product
constexpr int kStages = 6;

struct Stage {
  alignas(1024) Bf16 a[kTileRows * kDepth];
  alignas(1024) Bf16 b[kPartColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
  // Barriers: a stage has arrived in both blocks, counted in the first.
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];  // its products are done
  std::uint64_t done;            // all products are done
  std::uint32_t sums;            // address of 256 columns of tensor memory
};
static_assert(sizeof(Ring) <= 227 * 1024);

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    multiply(Params p, const __grid_constant__ CUtensorMap a_map,
             const __grid_constant__ CUtensorMap b_map) {
  auto& ring = ptx::dynamic_shared<Ring>();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  const int steps = p.k / kDepth;
  const auto rank = static_cast<int>(ptx::cluster_rank());
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, 1);
    ptx::mbarrier_init(ring.done, 1);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  if (warp == 0) ptx::tensor_memory_allocate<kSms>(&ring.sums, kTileColumns);
  ptx::tcgen05_fence_before_sync();
  ptx::cluster_arrive();
  ptx::cluster_wait();
  ptx::tcgen05_fence_after_sync();
  const std::uint32_t sums = ring.sums;

  if (warp == 0 && lane == 0) {
    for (int step = 0; step < steps; ++step) {
      Stage& stage = ring.stages[step % kStages];
      std::uint64_t& full = ring.full[step % kStages];
      // The first time round no product has to have read the stage.
      wait_for(ring.empty[step % kStages], step / kStages % 2 ^ 1);
      if (rank == 0) ptx::mbarrier_arrive_expect_tx(full, kSms * sizeof(Stage));
      const std::uint32_t of_first = ptx::map_shared(ptx::shared_address(&full), 0);
      ptx::tensor_load_2d_pair(stage.a, a_map, {.column = step * kDepth, .row = first_row},
                               of_first);
      ptx::tensor_load_2d_pair(stage.b, b_map,
                               {.column = step * kDepth, .row = first_column + rank * kPartColumns},
                               of_first);
    }
  } else if (warp == 1 && lane == 0 && rank == 0) {
    constexpr std::uint32_t kWhat = ptx::tcgen05_bf16(kSms * kTileRows, kTileColumns);
    for (int step = 0; step < steps; ++step) {
      Stage& stage = ring.stages[step % kStages];
      wait_for(ring.full[step % kStages], step / kStages % 2);
      ptx::tcgen05_fence_after_sync();
      const std::uint64_t a = ptx::tcgen05_tile_128b(ptx::shared_address(stage.a));
      const std::uint64_t b = ptx::tcgen05_tile_128b(ptx::shared_address(stage.b));
#pragma unroll
      for (int i = 0; i < kDepth / kStep; ++i) {
        ptx::tcgen05_mma_f16<kSms>(sums, a + 2 * i, b + 2 * i, kWhat, step + i > 0);
      }
      ptx::tcgen05_commit_pair(ring.empty[step % kStages], 0b11);
    }
    ptx::tcgen05_commit_pair(ring.done, 0b11);
  }
  __syncwarp();
  wait_for(ring.done, 0);
  ptx::tcgen05_fence_after_sync();
  store_rows(p.c + std::int64_t{first_row} * p.n + first_column, p.n, sums, kTileColumns);
  ptx::tcgen05_fence_before_sync();
  ptx::cluster_arrive();
  ptx::cluster_wait();
  if (warp == 0) ptx::tensor_memory_free<kSms>(sums, kTileColumns);
}

}  // namespace

lab::Side paired(const Params& p, const lab::Cuda& cuda) {
  using matmul_ladder::cuda::describe;
  CUtensorMap a_map, b_map;
  describe(p.a, p.m, p.k, kTileRows, a_map);
  describe(p.b, p.n, p.k, kPartColumns, b_map);
  cuda_check(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, stream = cuda.stream] {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {.x = kSms, .y = 1, .z = 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(p.m / kTileRows, p.n / kTileColumns);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = sizeof(Ring);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&config, multiply, p, a_map, b_map));
  };
}

}  // namespace gauntlet::labs::matmul_ladder_blackwell::cuda
