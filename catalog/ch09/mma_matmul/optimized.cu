// The same tiles in the same places; a warp's fragments come through ldmatrix, a register of each
// lane per 8 rows of 16 bytes, and go into mma.sync.
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

#include "catalog/ch09/mma_matmul/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::ch09::mma_matmul::cuda {
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
static_assert(kTile * kChunks % kThreads == 0 && kThreads % kChunks == 0);
static_assert(kTile / (kRows * 16) * (kTile / (kPairs * 16)) == kThreads / 32);

struct Tiles {
  alignas(32) float a[kTile][kPitch];
  alignas(32) float b[kTile][kPitch];
};

__device__ __forceinline__ void fetch(float4 (&to)[kLoads], const float* from, int pitch) {
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    to[i] = *reinterpret_cast<const float4*>(from + std::int64_t{i} * (kThreads / kChunks) * pitch);
  }
}

/// Rounded to tf32 on the way, once for all warps that will read it.
__device__ __forceinline__ void stage(float (&to)[kTile][kPitch], const float4 (&from)[kLoads]) {
  using nvcuda::wmma::__float_to_tf32;
  const int column = static_cast<int>(threadIdx.x) % kChunks * 4;
  const int row = static_cast<int>(threadIdx.x) / kChunks;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    *reinterpret_cast<float4*>(&to[row + i * (kThreads / kChunks)][column]) =
        make_float4(__float_to_tf32(from[i].x), __float_to_tf32(from[i].y),
                    __float_to_tf32(from[i].z), __float_to_tf32(from[i].w));
  }
}

__global__ void __launch_bounds__(kThreads, 2) multiply(Params p) {
  __shared__ Tiles tiles;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t place = std::int64_t{thread / kChunks} * p.k + thread % kChunks * 4;
  const float* a = p.a + first_row * p.k + place;
  const float* b = p.b + first_column * p.k + place;
  const int warp_row = warp % 2 * kRows * 16;
  const int warp_column = warp / 2 * kPairs * 16;
  // Matrices 0 to 3 of ldmatrix are 8 rows of 4 words: of A rows, rows + 8, and both 4 words
  // further; of B a fragment's two halves of K, then those of its neighbour.
  const float* from_a = &tiles.a[warp_row + lane % 16][lane / 16 * 4];
  const float* from_b = &tiles.b[warp_column + lane / 16 * 8 + lane % 8][lane / 8 % 2 * 4];

  float sums[kRows][2 * kPairs][4] = {};
  for (int first = 0; first < p.k; first += kDepth) {
    float4 words_a[kLoads], words_b[kLoads];
    fetch(words_a, a + first, p.k);
    fetch(words_b, b + first, p.k);
    __syncthreads();
    stage(tiles.a, words_a);
    stage(tiles.b, words_b);
    __syncthreads();
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
  return [p, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::mma_matmul::cuda
