// The same block, loaded the same way into the layout that wgmma reads: each of two warpgroups has
// 64 x 128 sums, and no fragment passes through registers.
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

#include "catalog/ch09/wgmma_matmul/pair.h"
#include "catalog/ch09/wgmma_matmul/swizzle.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/fence.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_tf32.cuh"

namespace gauntlet::ch09::wgmma_matmul::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 128;  // rows and columns of C per block
constexpr int kGroupRows = 64;
constexpr int kDepth = 32;
constexpr int kChunks = kDepth / 4;
constexpr int kLoads = kTile * kChunks / kThreads;
constexpr int kStep = 8;  // of K per product, 32 bytes
static_assert(kTile * kChunks % kThreads == 0 && kThreads % kChunks == 0);
static_assert(kTile / kGroupRows == kThreads / 128);

struct Tiles {
  alignas(1024) float a[kTile * kDepth];
  alignas(1024) float b[kTile * kDepth];
};

__device__ __forceinline__ void fetch(float4 (&to)[kLoads], const float* from, int pitch) {
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    to[i] = *reinterpret_cast<const float4*>(from + std::int64_t{i} * (kThreads / kChunks) * pitch);
  }
}

/// Rounded to tf32 on the way, once for all products that will read it.
__device__ __forceinline__ void stage(float* to, const float4 (&from)[kLoads]) {
  using nvcuda::wmma::__float_to_tf32;
  const int column = static_cast<int>(threadIdx.x) % kChunks * 4;
  const int row = static_cast<int>(threadIdx.x) / kChunks;
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    *reinterpret_cast<float4*>(to + swizzled(row + i * (kThreads / kChunks), column)) =
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
  const int group_row = warp / 4 * kGroupRows;
  const std::uint64_t of_a = ptx::wgmma_descriptor_128b(tiles.a + group_row * kDepth);
  const std::uint64_t of_b = ptx::wgmma_descriptor_128b(tiles.b);

  float sums[64];
  for (int first = 0; first < p.k; first += kDepth) {
    float4 words_a[kLoads], words_b[kLoads];
    fetch(words_a, a + first, p.k);
    fetch(words_b, b + first, p.k);
    __syncthreads();  // all products have read the tiles
    stage(tiles.a, words_a);
    stage(tiles.b, words_b);
    ptx::fence_proxy_async_shared();  // wgmma reads what ordinary stores wrote
    __syncthreads();
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kDepth / kStep; ++step) {
      ptx::wgmma_m64n128k8_tf32(sums, of_a + 2 * step, of_b + 2 * step, first + step > 0);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<0>();
  }

  // A lane's sums: rows lane / 4 and 8 further of its warp's 16, two columns of every eight.
  const std::int64_t row = first_row + group_row + warp % 4 * 16 + lane / 4;
  float* c = p.c + row * p.n + first_column + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j) {
    *reinterpret_cast<float2*>(c + 8 * j) = make_float2(sums[4 * j], sums[4 * j + 1]);
    *reinterpret_cast<float2*>(c + std::int64_t{8} * p.n + 8 * j) =
        make_float2(sums[4 * j + 2], sums[4 * j + 3]);
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    multiply<<<dim3(p.n / kTile, p.m / kTile), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::wgmma_matmul::cuda
