// Tiles of both operands in shared memory; a warp's 64 x 32 sums are fragments of WMMA, added to by
// tensor cores.
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

#include "catalog/ch09/mma_matmul/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::mma_matmul::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;  // rows and columns of C per block
constexpr int kDepth = 32;
constexpr int kPitch = kDepth + 4;  // rows start in different banks, fragments at 32 bytes
constexpr int kChunks = kDepth / 4;
constexpr int kLoads = kTile * kChunks / kThreads;
constexpr int kFragment = 16;  // rows and columns
constexpr int kStep = 8;       // of K per product
constexpr int kRows = 4;       // fragments per warp
constexpr int kColumns = 2;
static_assert(kTile * kChunks % kThreads == 0 && kThreads % kChunks == 0);
static_assert(kTile / (kRows * kFragment) * (kTile / (kColumns * kFragment)) == kThreads / 32);

struct Tiles {
  alignas(32) float a[kTile][kPitch];
  alignas(32) float b[kTile][kPitch];
};

using nvcuda::wmma::precision::tf32;
using FragmentA = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kFragment, kFragment, kStep, tf32,
                                         nvcuda::wmma::row_major>;
using FragmentB = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kFragment, kFragment, kStep, tf32,
                                         nvcuda::wmma::col_major>;
using Sums = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kFragment, kFragment, kStep, float>;

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
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t place = std::int64_t{thread / kChunks} * p.k + thread % kChunks * 4;
  const float* a = p.a + first_row * p.k + place;
  const float* b = p.b + first_column * p.k + place;
  const int warp_row = warp % 2 * kRows * kFragment;
  const int warp_column = warp / 2 * kColumns * kFragment;

  Sums sums[kRows][kColumns];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) nvcuda::wmma::fill_fragment(sums[i][j], 0.0f);
  }
  for (int first = 0; first < p.k; first += kDepth) {
    float4 words_a[kLoads], words_b[kLoads];
    fetch(words_a, a + first, p.k);
    fetch(words_b, b + first, p.k);
    __syncthreads();
    stage(tiles.a, words_a);
    stage(tiles.b, words_b);
    __syncthreads();
// Unrolled, its addresses would take the registers of a second block per SM.
#pragma unroll 1
    for (int step = 0; step < kDepth; step += kStep) {
      FragmentB of_b[kColumns];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        nvcuda::wmma::load_matrix_sync(of_b[j], &tiles.b[warp_column + j * kFragment][step],
                                       kPitch);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        FragmentA of_a;
        nvcuda::wmma::load_matrix_sync(of_a, &tiles.a[warp_row + i * kFragment][step], kPitch);
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          nvcuda::wmma::mma_sync(sums[i][j], of_a, of_b[j], sums[i][j]);
        }
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      float* c = p.c + (first_row + warp_row + i * kFragment) * p.n + first_column + warp_column +
                 j * kFragment;
      nvcuda::wmma::store_matrix_sync(c, sums[i][j], static_cast<unsigned>(p.n),
                                      nvcuda::wmma::mem_row_major);
    }
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::mma_matmul::cuda
