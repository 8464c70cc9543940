// Two buffers: while tensor cores multiply the tiles in one, asynchronous copies fill the other.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/ch10/double_buffer/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/cp_async.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::ch10::double_buffer::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;  // rows and columns of C per block
constexpr int kDepth = 32;
constexpr int kPitch = kDepth + 4;  // eight rows of 16 bytes cover all banks
constexpr int kChunks = kDepth / 4;
constexpr int kLoads = kTile * kChunks / kThreads;
constexpr int kStep = 8;   // of K per product
constexpr int kRows = 4;   // fragments of 16 rows per warp
constexpr int kPairs = 2;  // of fragments of 8 columns
constexpr int kStages = 2;
static_assert(kTile * kChunks % kThreads == 0 && kThreads % kChunks == 0);
static_assert(kTile / (kRows * 16) * (kTile / (kPairs * 16)) == kThreads / 32);

struct Stage {
  alignas(16) float a[kTile][kPitch];
  alignas(16) float b[kTile][kPitch];
};

/// The thread's share of a tile, 16 bytes at a time; does not wait.
__device__ __forceinline__ void fetch(float (&to)[kTile][kPitch], const float* from, int pitch) {
  const int column = static_cast<int>(threadIdx.x) % kChunks * 4;
  const int row = static_cast<int>(threadIdx.x) / kChunks;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int down = i * (kThreads / kChunks);
    ptx::cp_async_16(&to[row + down][column], from + std::int64_t{down} * pitch);
  }
}

using Sums = float[kRows][2 * kPairs][4];

/// sums += the warp's 64 rows of a by its 32 columns of b. Matrices 0 to 3 of ldmatrix are 8 rows
/// of 4 words: of A rows, rows + 8, and both 4 words further; of B a fragment's two halves of K,
/// then those of its neighbour.
__device__ __forceinline__ void multiply(Sums& sums, const Stage& stage, int warp_row,
                                         int warp_column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* from_a = &stage.a[warp_row + lane % 16][lane / 16 * 4];
  const float* from_b = &stage.b[warp_column + lane / 16 * 8 + lane % 8][lane / 8 % 2 * 4];
#pragma unroll
  for (int step = 0; step < kDepth; step += kStep) {
    std::uint32_t of_a[kRows][4], of_b[kPairs][4];
#pragma unroll
    for (int i = 0; i < kRows; ++i) ptx::ldmatrix_x4(of_a[i], from_a + i * 16 * kPitch + step);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) ptx::ldmatrix_x4(of_b[j], from_b + j * 16 * kPitch + step);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kPairs; ++j) {
        const std::uint32_t halves[2] = {of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]};
        ptx::mma_m16n8k8_tf32(sums[i][j], of_a[i], halves);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads, 2) product(Params p) {
  extern __shared__ __align__(16) unsigned char ring_bytes[];
  auto* stages = reinterpret_cast<Stage*>(ring_bytes);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t place = std::int64_t{thread / kChunks} * p.k + thread % kChunks * 4;
  const float* a = p.a + first_row * p.k + place;
  const float* b = p.b + first_column * p.k + place;
  const int warp_row = warp % 2 * kRows * 16;
  const int warp_column = warp / 2 * kPairs * 16;

  Sums sums = {};
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
  for (int step = 0; step < kStages - 1; ++step) start(step);
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();  // all shares of this stage are there, and all warps have read the one before
    start(step + kStages - 1);
    multiply(sums, stages[step % kStages], warp_row, warp_column);
  }

#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * kPairs; ++j) {
      float* c = p.c + (first_row + warp_row + i * 16 + lane / 4) * p.n + first_column +
                 warp_column + j * 8 + lane % 4 * 2;
      const float(&s)[4] = sums[i][j];
      *reinterpret_cast<float2*>(c) = make_float2(s[0], s[1]);
      *reinterpret_cast<float2*>(c + std::int64_t{8} * p.n) = make_float2(s[2], s[3]);
    }
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  cuda_check(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kStages * sizeof(Stage)));
  return [p, stream = cuda.stream] {
    product<<<dim3(p.n / kTile, p.m / kTile), kThreads, kStages * sizeof(Stage), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::double_buffer::cuda
