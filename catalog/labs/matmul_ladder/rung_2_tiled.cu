// Tiles of both operands in shared memory, and of those a thread keeps 8 x 8 sums in registers:
// what is fetched once is used 128 times.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder/bf16_pairs.cuh"
#include "catalog/labs/matmul_ladder/lab.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::labs::matmul_ladder::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;  // rows and columns of C per block
constexpr int kDepth = 16;
constexpr int kWords = 8;  // elements in 16 bytes
constexpr int kSide = 8;   // rows and columns of a thread
constexpr int kThreadsAcross = kTile / kSide;
static_assert(kTile * kDepth / kWords == kThreads && kThreadsAcross * kThreadsAcross == kThreads);

/// By columns, so that neighbouring threads read neighbouring words.
struct Tiles {
  alignas(16) float a[kDepth][kTile];
  alignas(16) float b[kDepth][kTile];
};

__device__ __forceinline__ void stage(float (&to)[kDepth][kTile], const uint4& words) {
  const int row = static_cast<int>(threadIdx.x) % kTile;
  const int first = static_cast<int>(threadIdx.x) / kTile * kWords;
  const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[first + 2 * i][row] = lower(pairs[i]);
    to[first + 2 * i + 1][row] = upper(pairs[i]);
  }
}

/// Four at the thread's place and four in the other half of the tile: no two threads of a quarter
/// warp read the same bank.
__device__ __forceinline__ void read(float (&to)[kSide], const float (&from)[kTile], int place) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from + 4 * place);
  *reinterpret_cast<float4*>(to + 4) =
      *reinterpret_cast<const float4*>(from + kTile / 2 + 4 * place);
}
__device__ __forceinline__ int place_of(int place, int i) {
  return i / 4 * (kTile / 2) + 4 * place + i % 4;
}

__global__ void __launch_bounds__(kThreads, 2) multiply(Params p) {
  __shared__ Tiles tiles;
  const int thread = static_cast<int>(threadIdx.x);
  const int across = thread % kThreadsAcross, down = thread / kThreadsAcross;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t place = std::int64_t{thread % kTile} * p.k + thread / kTile * kWords;
  const Bf16* a = p.a + first_row * p.k + place;
  const Bf16* b = p.b + first_column * p.k + place;

  float sums[kSide][kSide] = {};
  for (int first = 0; first < p.k; first += kDepth) {
    const uint4 words_a = *reinterpret_cast<const uint4*>(a + first);
    const uint4 words_b = *reinterpret_cast<const uint4*>(b + first);
    __syncthreads();
    stage(tiles.a, words_a);
    stage(tiles.b, words_b);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      float of_a[kSide], of_b[kSide];
      read(of_a, tiles.a[step], down);
      read(of_b, tiles.b[step], across);
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
#pragma unroll
        for (int j = 0; j < kSide; ++j) sums[i][j] += of_a[i] * of_b[j];
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    Bf16* c = p.c + (first_row + place_of(down, i)) * p.n + first_column;
#pragma unroll
    for (int j = 0; j < kSide; j += 4) {
      const float(&s)[kSide] = sums[i];
      *reinterpret_cast<uint2*>(c + place_of(across, j)) =
          make_uint2(rounded_pair(s[j], s[j + 1]), rounded_pair(s[j + 2], s[j + 3]));
    }
  }
}

}  // namespace

lab::Side tiled(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
