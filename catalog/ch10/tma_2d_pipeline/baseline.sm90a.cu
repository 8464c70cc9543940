// Four stages of asynchronous copies, 16 bytes per thread and instruction, into the layout that
// wgmma reads; every thread computes twelve addresses per stage.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/ch10/tma_2d_pipeline/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/tensor_map.h"
#include "lab/author/side.h"
#include "ptx/cp_async.cuh"
#include "ptx/fence.cuh"
#include "ptx/wgmma.cuh"

namespace gauntlet::ch10::tma_2d_pipeline::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTileRows = 128;
constexpr int kTileColumns = 256;
constexpr int kDepth = 32;      // 128 bytes, a row of the swizzle
constexpr int kStep = 8;        // of K per wgmma
constexpr int kGroupRows = 64;  // of a warpgroup
constexpr int kStages = 4;
constexpr int kChunks = kDepth / 4;
static_assert(kThreads % kChunks == 0 && kTileRows == 2 * kGroupRows);

struct Stage {
  alignas(1024) float a[kTileRows * kDepth];
  alignas(1024) float b[kTileColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
};
static_assert(sizeof(Ring) <= 227 * 1024);

/// The thread's share of a tile, 16 bytes at a time; does not wait. The chunks of a row change
/// places with the row's number modulo 8, as the 128-byte swizzle has them.
template <int kRows>
__device__ __forceinline__ void fetch(float* to, const float* from, int pitch) {
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  constexpr int kRowsAtOnce = kThreads / kChunks;
  static_assert(kRows % kRowsAtOnce == 0 && kRowsAtOnce % 8 == 0);
  const int place = row * kDepth + (chunk ^ (row % 8)) * 4;
#pragma unroll
  for (int down = 0; down < kRows; down += kRowsAtOnce) {
    ptx::cp_async_16(to + down * kDepth + place,
                     from + std::int64_t{row + down} * pitch + chunk * 4);
  }
}

/// sums += a warpgroup's 64 rows of a stage by its 256 columns; does not wait.
__device__ __forceinline__ void start_product(float (&sums)[128], const float* a, const float* b,
                                              bool add) {
  const std::uint64_t of_a = ptx::wgmma_descriptor_128b(a);
  const std::uint64_t of_b = ptx::wgmma_descriptor_128b(b);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kDepth / kStep; ++step) {
    // 32 bytes further along K are two units of the descriptor.
    ptx::wgmma_m64n256k8_tf32(sums, of_a + 2 * step, of_b + 2 * step, add || step > 0);
  }
  ptx::wgmma_commit_group();
}

/// A lane's sums: rows lane / 4 and 8 further of its warp's 16, two columns of every eight.
__device__ __forceinline__ void store_sums(const float (&sums)[128], float* c, int pitch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  float* upper = c + std::int64_t{warp * 16 + lane / 4} * pitch + lane % 4 * 2;
  float* lower = upper + std::int64_t{8} * pitch;
#pragma unroll
  for (int j = 0; j < kTileColumns / 8; ++j) {
    *reinterpret_cast<float2*>(upper + 8 * j) = make_float2(sums[4 * j], sums[4 * j + 1]);
    *reinterpret_cast<float2*>(lower + 8 * j) = make_float2(sums[4 * j + 2], sums[4 * j + 3]);
  }
}

__global__ void __launch_bounds__(kThreads, 1) product(Params p) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto& ring = *reinterpret_cast<Ring*>(ring_bytes);
  const int group_row = static_cast<int>(threadIdx.x) / 128 * kGroupRows;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * kTileRows;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * kTileColumns;
  const float* a = p.a + first_row * p.k;
  const float* b = p.b + first_column * p.k;
  const int steps = p.k / kDepth;

  // A group per stage, empty ones at the end, so that the newest kStages - 2 are always those that
  // may be unfinished.
  const auto start = [&](int step) {
    if (step < steps) {
      Stage& stage = ring.stages[step % kStages];
      fetch<kTileRows>(stage.a, a + std::int64_t{step} * kDepth, p.k);
      fetch<kTileColumns>(stage.b, b + std::int64_t{step} * kDepth, p.k);
    }
    ptx::cp_async_commit_group();
  };
  for (int step = 0; step < kStages - 1; ++step) start(step);

  float sums[128];
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    ptx::fence_proxy_async_shared();  // wgmma reads what these copies wrote
    __syncthreads();  // all shares of this stage are there, and the products before it are done
    start(step + kStages - 1);
    const Stage& stage = ring.stages[step % kStages];
    start_product(sums, stage.a + group_row * kDepth, stage.b, step > 0);
    ptx::wgmma_wait_group<0>();
  }
  store_sums(sums, p.c + (first_row + group_row) * p.n + first_column, p.n);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  cuda_check(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, stream = cuda.stream] {
    product<<<dim3(p.m / kTileRows, p.n / kTileColumns), kThreads, sizeof(Ring), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::tma_2d_pipeline::cuda
