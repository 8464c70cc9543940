// mma.sync on eight-bit operands, in tiles that cp.async brings: after 128 elements along k the
// partial sums are scaled and added to the sums.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder/bf16_pairs.cuh"
#include "catalog/labs/matmul_ladder_fp8/lab.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/address.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::labs::matmul_ladder_fp8::cuda {
namespace {

using matmul_ladder::cuda::rounded_pair;

constexpr int kThreads = 256;
constexpr int kTile = 128;   // rows and columns of C per block
constexpr int kDepth = 128;  // bytes, and elements that share a scale
constexpr int kChunks = kDepth / 16;
constexpr int kLoads = kTile * kChunks / kThreads;
constexpr int kStep = 32;  // of K per product
constexpr int kWarpRows = 64;
constexpr int kWarpColumns = 32;
constexpr int kRows = kWarpRows / 16;      // fragments
constexpr int kPairs = kWarpColumns / 16;  // of fragments of 8 columns
constexpr int kStages = 4;
static_assert(kDepth == kScaled && kTile == kScaled);
static_assert(kTile / kWarpRows * (kTile / kWarpColumns) == kThreads / 32);

struct Stage {
  alignas(1024) F8e4m3 a[kTile * kDepth];
  alignas(1024) F8e4m3 b[kTile * kDepth];
};

/// The thread's share of a tile, 16 bytes at a time; does not wait. The chunks of a row change
/// places with the row's number, so that eight rows cover all banks.
__device__ __forceinline__ void fetch(F8e4m3* to, const F8e4m3* from, int pitch) {
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int down = i * (kThreads / kChunks);
    ptx::cp_async_16(to + (row + down) * kDepth + (chunk ^ (row % 8)) * 16,
                     from + std::int64_t{down} * pitch);
  }
}

using Sums = float[kRows][2 * kPairs][4];

/// The warp's rows of a by its columns of b. Matrices 0 to 3 of ldmatrix are 8 rows of 16 bytes: of
/// A rows, rows + 8, and both 16 bytes further; of B a fragment's two halves of K, then those of
/// its neighbour.
__device__ __forceinline__ void multiply(Sums& parts, const Stage& stage, int warp_row,
                                         int warp_column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t from_a = ptx::shared_address(stage.a + (warp_row + lane % 16) * kDepth);
  const std::uint32_t from_b =
      ptx::shared_address(stage.b + (warp_column + lane / 16 * 8 + lane % 8) * kDepth);
  const int chunk_a = lane / 16, chunk_b = lane / 8 % 2;
#pragma unroll
  for (int step = 0; step < kDepth / kStep; ++step) {
    std::uint32_t of_a[kRows][4], of_b[kPairs][4];
    const std::uint32_t at_a = from_a + ((2 * step + chunk_a) ^ (lane % 8)) * 16;
    const std::uint32_t at_b = from_b + ((2 * step + chunk_b) ^ (lane % 8)) * 16;
#pragma unroll
    for (int i = 0; i < kRows; ++i) ptx::ldmatrix_x4(of_a[i], at_a + i * 16 * kDepth);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) ptx::ldmatrix_x4(of_b[j], at_b + j * 16 * kDepth);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kPairs; ++j) {
        const std::uint32_t halves[2] = {of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]};
        ptx::mma_m16n8k32_f8e4m3(parts[i][j], of_a[i], halves);
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads, 1) product(Params p) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto* stages = reinterpret_cast<Stage*>(ring_bytes);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t place = std::int64_t{thread / kChunks} * p.k + thread % kChunks * 16;
  const F8e4m3* a = p.a + first_row * p.k + place;
  const F8e4m3* b = p.b + first_column * p.k + place;
  const int warp_row = warp % 2 * kWarpRows, warp_column = warp / 2 * kWarpColumns;
  const float* a_scales = p.a_scales + first_row + warp_row + lane / 4;
  const int steps = p.k / kDepth;
  const float* b_scales = p.b_scales + std::int64_t{blockIdx.x} * steps;

  const auto start = [&](int step) {
    if (step < steps) {
      Stage& stage = stages[step % kStages];
      fetch(stage.a, a + std::int64_t{step} * kDepth, p.k);
      fetch(stage.b, b + std::int64_t{step} * kDepth, p.k);
    }
    ptx::cp_async_commit_group();
  };
  Sums sums = {};
  for (int step = 0; step < kStages - 1; ++step) start(step);
  for (int step = 0; step < steps; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();  // all shares of this stage are there, and all warps have read the one before
    start(step + kStages - 1);
    Sums parts = {};
    multiply(parts, stages[step % kStages], warp_row, warp_column);
    const float b_scale = b_scales[step];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float upper = b_scale * a_scales[std::int64_t{step} * p.m + 16 * i];
      const float lower = b_scale * a_scales[std::int64_t{step} * p.m + 16 * i + 8];
#pragma unroll
      for (int j = 0; j < 2 * kPairs; ++j) {
        sums[i][j][0] += upper * parts[i][j][0];
        sums[i][j][1] += upper * parts[i][j][1];
        sums[i][j][2] += lower * parts[i][j][2];
        sums[i][j][3] += lower * parts[i][j][3];
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * kPairs; ++j) {
      Bf16* c = p.c + (first_row + warp_row + i * 16 + lane / 4) * p.n + first_column +
                warp_column + j * 8 + lane % 4 * 2;
      const float(&s)[4] = sums[i][j];
      *reinterpret_cast<std::uint32_t*>(c) = rounded_pair(s[0], s[1]);
      *reinterpret_cast<std::uint32_t*>(c + std::int64_t{8} * p.n) = rounded_pair(s[2], s[3]);
    }
  }
}

}  // namespace

lab::Side mma(const Params& p, const lab::Cuda& cuda) {
  cuda_check(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kStages * sizeof(Stage)));
  return [p, stream = cuda.stream] {
    product<<<dim3(p.n / kTile, p.m / kTile), kThreads, kStages * sizeof(Stage), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::labs::matmul_ladder_fp8::cuda
