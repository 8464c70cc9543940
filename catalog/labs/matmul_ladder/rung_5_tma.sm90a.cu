// The same ring, filled by one thread: two tensor copies per stage, which count the bytes that have
// come at a barrier, in place of 2,048 copies by all threads.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder/lab.h"
#include "catalog/labs/matmul_ladder/tile_maps.h"
#include "catalog/labs/matmul_ladder/warp_tile.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::labs::matmul_ladder::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;  // rows and columns of C per block
constexpr int kStages = 3;
static_assert(kTile / kWarpRows * (kTile / kWarpColumns) == kThreads / 32);

struct Stage {
  alignas(1024) Bf16 a[kTile * kDepth];
  alignas(1024) Bf16 b[kTile * kDepth];
};

struct Ring {
  Stage stages[kStages];
  std::uint64_t full[kStages];  // barriers: a stage has arrived
};
static_assert(2 * sizeof(Ring) <= 226 * 1024, "two blocks per SM");

__global__ void __launch_bounds__(kThreads, 2)
    multiply(Params p, const __grid_constant__ CUtensorMap a_map,
             const __grid_constant__ CUtensorMap b_map) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto& ring = *reinterpret_cast<Ring*>(ring_bytes);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int steps = p.k / kDepth;

  const auto start = [&](int step) {
    if (threadIdx.x > 0 || step >= steps) return;
    Stage& stage = ring.stages[step % kStages];
    std::uint64_t& full = ring.full[step % kStages];
    ptx::mbarrier_arrive_expect_tx(full, sizeof(Stage));
    ptx::tensor_load_2d(stage.a, a_map, {.column = step * kDepth, .row = first_row}, full);
    ptx::tensor_load_2d(stage.b, b_map, {.column = step * kDepth, .row = first_column}, full);
  };
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  WarpTile sums(warp % 2 * kWarpRows, warp / 2 * kWarpColumns);
  for (int step = 0; step < kStages - 1; ++step) start(step);
  for (int step = 0; step < steps; ++step) {
    if (step > 0) __syncthreads();  // all warps have read the stage before
    start(step + kStages - 1);
    while (!ptx::mbarrier_try_wait(ring.full[step % kStages], step / kStages % 2)) {
    }
    const Stage& stage = ring.stages[step % kStages];
    sums.multiply(stage.a, stage.b);
  }
  sums.store(p.c + std::int64_t{first_row} * p.n + first_column, p.n);
}

}  // namespace

lab::Side tma(const Params& p, const lab::Cuda& cuda) {
  CUtensorMap a_map, b_map;
  describe(p.a, p.m, p.k, kTile, a_map);
  describe(p.b, p.n, p.k, kTile, b_map);
  cuda_check(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, sizeof(Ring), stream>>>(p, a_map, b_map);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
