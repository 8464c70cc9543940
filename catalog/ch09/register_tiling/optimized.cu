// Tiles of 128 x 32 in shared memory, and 8 x 8 sums per thread in registers: each word read from
// shared memory is used eight times.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/ch09/register_tiling/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::register_tiling::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;  // rows and columns of C per block
constexpr int kDepth = 32;
constexpr int kPitch = kTile + 4;  // keeps rows of float4 aligned and off each other's banks
constexpr int kLoads = kTile * kDepth / 4 / kThreads;
static_assert(kTile * kDepth % (4 * kThreads) == 0);

struct Tiles {
  alignas(16) float a[kDepth][kPitch];  // turned round, so that a thread's rows are neighbours
  alignas(16) float b[kDepth][kPitch];
};

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
  const int a_row = thread / 8, a_column = thread % 8 * 4;    // 32 rows of 8 vectors at a time
  const int b_row = thread / 32, b_column = thread % 32 * 4;  // 8 rows of 32
  const float* a = p.a + (first_row + a_row) * p.k + a_column;
  const float* b = p.b + std::int64_t{b_row} * p.n + first_column + b_column;
  const int x = thread % 16, y = thread / 16;

  float sums[8][8] = {};
  for (int first = 0; first < p.k; first += kDepth) {
    float4 words_a[kLoads], words_b[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      words_a[i] = *reinterpret_cast<const float4*>(a + std::int64_t{32} * i * p.k + first);
      words_b[i] = *reinterpret_cast<const float4*>(b + (first + std::int64_t{8} * i) * p.n);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      tiles.a[a_column][a_row + 32 * i] = words_a[i].x;
      tiles.a[a_column + 1][a_row + 32 * i] = words_a[i].y;
      tiles.a[a_column + 2][a_row + 32 * i] = words_a[i].z;
      tiles.a[a_column + 3][a_row + 32 * i] = words_a[i].w;
      *reinterpret_cast<float4*>(&tiles.b[b_row + 8 * i][b_column]) = words_b[i];
    }
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

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::register_tiling::cuda
