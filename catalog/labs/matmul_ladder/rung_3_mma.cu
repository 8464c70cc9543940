// Tensor cores: tiles stay bf16 in shared memory, ldmatrix brings a warp its fragments, mma.sync
// multiplies 16 x 16 by 16 x 8 of them.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder/lab.h"
#include "catalog/labs/matmul_ladder/warp_tile.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::labs::matmul_ladder::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;           // rows and columns of C per block
constexpr int kChunks = kDepth / 8;  // of 16 bytes in a row
constexpr int kLoads = kTile * kChunks / kThreads;
static_assert(kTile / kWarpRows * (kTile / kWarpColumns) == kThreads / 32);

struct Tiles {
  alignas(1024) Bf16 a[kTile * kDepth];
  alignas(1024) Bf16 b[kTile * kDepth];
};

__device__ __forceinline__ void fetch(uint4 (&to)[kLoads], const Bf16* from, int pitch) {
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    to[i] = *reinterpret_cast<const uint4*>(from + std::int64_t{i} * (kThreads / kChunks) * pitch);
  }
}

__device__ __forceinline__ void stage(Bf16* to, const uint4 (&from)[kLoads]) {
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % kChunks;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    *reinterpret_cast<uint4*>(to + swizzled(row + i * (kThreads / kChunks), chunk)) = from[i];
  }
}

__global__ void __launch_bounds__(kThreads, 2) multiply(Params p) {
  __shared__ Tiles tiles;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t place = std::int64_t{thread / kChunks} * p.k + thread % kChunks * 8;
  const Bf16* a = p.a + first_row * p.k + place;
  const Bf16* b = p.b + first_column * p.k + place;

  WarpTile sums(warp % 2 * kWarpRows, warp / 2 * kWarpColumns);
  for (int first = 0; first < p.k; first += kDepth) {
    uint4 words_a[kLoads], words_b[kLoads];
    fetch(words_a, a + first, p.k);
    fetch(words_b, b + first, p.k);
    __syncthreads();
    stage(tiles.a, words_a);
    stage(tiles.b, words_b);
    __syncthreads();
    sums.multiply(tiles.a, tiles.b);
  }
  sums.store(p.c + first_row * p.n + first_column, p.n);
}

}  // namespace

lab::Side mma(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
