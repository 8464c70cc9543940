// Fused multiply-adds: tiles of both operands in shared memory, 8 x 8 sums per thread in registers.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/ch09/wmma_matmul/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::wmma_matmul::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;  // rows and columns of C per block
constexpr int kDepth = 32;
constexpr int kPitch = kTile + 4;  // keeps rows of float4 aligned and off each other's banks
constexpr int kChunks = kDepth / 4;
constexpr int kLoads = kTile * kChunks / kThreads;
static_assert(kTile * kChunks % kThreads == 0 && kThreads % kChunks == 0);

/// Turned round, so that a thread's rows and columns are neighbours.
struct Tiles {
  alignas(16) float a[kDepth][kPitch];
  alignas(16) float b[kDepth][kPitch];
};

__device__ __forceinline__ void fetch(float4 (&to)[kLoads], const float* from, int pitch) {
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    to[i] = *reinterpret_cast<const float4*>(from + std::int64_t{i} * (kThreads / kChunks) * pitch);
  }
}

__device__ __forceinline__ void stage(float (&to)[kDepth][kPitch], const float4 (&from)[kLoads]) {
  const int column = static_cast<int>(threadIdx.x) % kChunks * 4;
  const int row = static_cast<int>(threadIdx.x) / kChunks;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const int at = row + i * (kThreads / kChunks);
    to[column][at] = from[i].x;
    to[column + 1][at] = from[i].y;
    to[column + 2][at] = from[i].z;
    to[column + 3][at] = from[i].w;
  }
}

/// A thread's eight of a row of a tile: four, and four in the other half.
__device__ __forceinline__ void load_eight(float (&to)[8], const float* row, int place) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(row + 4 * place);
  *reinterpret_cast<float4*>(to + 4) =
      *reinterpret_cast<const float4*>(row + kTile / 2 + 4 * place);
}

__global__ void __launch_bounds__(kThreads, 2) multiply(Params p) {
  __shared__ Tiles tiles;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t place = std::int64_t{thread / kChunks} * p.k + thread % kChunks * 4;
  const float* a = p.a + first_row * p.k + place;
  const float* b = p.b + first_column * p.k + place;
  const int x = thread % 16, y = thread / 16;

  float sums[8][8] = {};
  for (int first = 0; first < p.k; first += kDepth) {
    float4 words_a[kLoads], words_b[kLoads];
    fetch(words_a, a + first, p.k);
    fetch(words_b, b + first, p.k);
    __syncthreads();
    stage(tiles.a, words_a);
    stage(tiles.b, words_b);
    __syncthreads();
#pragma unroll 4
    for (int i = 0; i < kDepth; ++i) {
      float of_a[8], of_b[8];
      load_eight(of_a, tiles.a[i], y);
      load_eight(of_b, tiles.b[i], x);
#pragma unroll
      for (int row = 0; row < 8; ++row) {
#pragma unroll
        for (int column = 0; column < 8; ++column) sums[row][column] += of_a[row] * of_b[column];
      }
    }
  }

#pragma unroll
  for (int row = 0; row < 8; ++row) {
    float* c = p.c + (first_row + row / 4 * (kTile / 2) + 4 * y + row % 4) * p.n + first_column;
    const float(&s)[8] = sums[row];
    *reinterpret_cast<float4*>(c + 4 * x) = make_float4(s[0], s[1], s[2], s[3]);
    *reinterpret_cast<float4*>(c + kTile / 2 + 4 * x) = make_float4(s[4], s[5], s[6], s[7]);
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::wmma_matmul::cuda
