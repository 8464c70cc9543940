// The same products from a ring of three stages: copies that no register waits for fill two of them
// while the third is multiplied.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder/lab.h"
#include "catalog/labs/matmul_ladder/warp_tile.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/cp_async.cuh"

namespace gauntlet::labs::matmul_ladder::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;           // rows and columns of C per block
constexpr int kChunks = kDepth / 8;  // of 16 bytes in a row
constexpr int kLoads = kTile * kChunks / kThreads;
constexpr int kStages = 3;
static_assert(kTile / kWarpRows * (kTile / kWarpColumns) == kThreads / 32);

struct Stage {
  alignas(1024) Bf16 a[kTile * kDepth];
  alignas(1024) Bf16 b[kTile * kDepth];
};
static_assert(2 * kStages * sizeof(Stage) <= 226 * 1024, "two blocks per SM");

/// The thread's share of a tile, 16 bytes at a time; does not wait.
__device__ __forceinline__ void fetch(Bf16* to, const Bf16* from, int pitch) {
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int down = i * (kThreads / kChunks);
    ptx::cp_async_16(to + swizzled(row + down, chunk), from + std::int64_t{down} * pitch);
  }
}

__global__ void __launch_bounds__(kThreads, 2) multiply(Params p) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto* stages = reinterpret_cast<Stage*>(ring_bytes);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t place = std::int64_t{thread / kChunks} * p.k + thread % kChunks * 8;
  const Bf16* a = p.a + first_row * p.k + place;
  const Bf16* b = p.b + first_column * p.k + place;
  const int steps = p.k / kDepth;

  // A group per stage, empty ones at the end, so that the newest kStages - 2 are always those that
  // may be unfinished.
  const auto start = [&](int step) {
    if (step < steps) {
      Stage& stage = stages[step % kStages];
      fetch(stage.a, a + std::int64_t{step} * kDepth, p.k);
      fetch(stage.b, b + std::int64_t{step} * kDepth, p.k);
    }
    ptx::cp_async_commit_group();
  };
  WarpTile sums(warp % 2 * kWarpRows, warp / 2 * kWarpColumns);
  for (int step = 0; step < kStages - 1; ++step) start(step);
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();  // all shares of this stage are there, and all warps have read the one before
    start(step + kStages - 1);
    const Stage& stage = stages[step % kStages];
    sums.multiply(stage.a, stage.b);
  }
  sums.store(p.c + first_row * p.n + first_column, p.n);
}

}  // namespace

lab::Side cp_async(const Params& p, const lab::Cuda& cuda) {
  cuda_check(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kStages * sizeof(Stage)));
  return [p, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, kStages * sizeof(Stage), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
