// A block per 64 queries: their scores with all keys go to memory, since shared memory cannot hold
// them, are turned into exponentials there, and come back for the product with the values.
#include <cuda_runtime.h>

#include "catalog/ch10/flash_attention/pair.h"
#include "catalog/ch10/flash_attention/tiles.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch10::flash_attention::cuda {
namespace {

constexpr int kTile = 64;  // queries of a block, and keys at a time
constexpr int kPitch = kTile + 4;
constexpr int kWarps = kThreads / 32;
static_assert(kTile == kHeadDim && kTile * kTile == 16 * kThreads, "four by four per thread");

struct Shared {
  alignas(16) float q[kHeadDim][kPitch];  // a query is a column
  alignas(16) float tile[kTile * kTile];  // of keys, then of exponentials
  alignas(16) float v[kTile * kHeadDim];
  float inverse[kTile];
};

/// Scores of the warp's eight rows become exponentials, and one over their sums is kept.
__device__ void softmax_rows(const Params& p, float* scores, float (&inverse)[kTile]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = warp; i < kTile; i += kWarps) {
    float* row = scores + i * p.keys;
    float top = -INFINITY, sum = 0;
    for (std::int64_t key = 4 * lane; key < p.keys; key += 128) {
      const float4 s = load(row + key);
      top = fmaxf(top, fmaxf(fmaxf(s.x, s.y), fmaxf(s.z, s.w)));
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      top = fmaxf(top, __shfl_xor_sync(~0u, top, offset));
    }
    for (std::int64_t key = 4 * lane; key < p.keys; key += 128) {
      const float4 s = exponentials(load(row + key), top);
      store(row + key, s);
      sum += (s.x + s.y) + (s.z + s.w);
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (lane == 0) inverse[i] = 1 / sum;
  }
}

__global__ void __launch_bounds__(kThreads) attend(Params p) {
  extern __shared__ __align__(16) unsigned char flash_bytes[];
  auto& shared = *reinterpret_cast<Shared*>(flash_bytes);
  const int thread = static_cast<int>(threadIdx.x), x = thread % 16, y = thread / 16;
  const std::int64_t head = blockIdx.y;
  const std::int64_t row = head * p.queries + std::int64_t{blockIdx.x} * kTile;
  const float* k = p.k + head * kHeadDim * p.keys;
  const float* v = p.v + head * p.keys * kHeadDim;
  float* scores = p.scores + row * p.keys;
  load_transposed<kTile>(shared.q[0], kPitch, p.q + row * kHeadDim);

  for (std::int64_t first = 0; first < p.keys; first += kTile) {
    __syncthreads();
    load_tile<kHeadDim, kTile>(shared.tile, k + first, p.keys);
    __syncthreads();
    float sums[4][4] = {};
#pragma unroll 8
    for (int d = 0; d < kHeadDim; ++d) {
      add_outer(sums, load(&shared.q[d][4 * y]), load(shared.tile + d * kTile + 4 * x));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      store(scores + (4 * y + i) * p.keys + first + 4 * x,
            make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
    }
  }
  __syncthreads();
  softmax_rows(p, scores, shared.inverse);

  float sums[4][4] = {};
  for (std::int64_t first = 0; first < p.keys; first += kTile) {
    __syncthreads();
    load_tile<kTile, kTile>(shared.tile, scores + first, p.keys);
    load_tile<kTile, kHeadDim>(shared.v, v + first * kHeadDim, kHeadDim);
    __syncthreads();
#pragma unroll 4
    for (int key = 0; key < kTile; key += 4) {
      add_weighted(sums, shared.tile + 4 * y * kTile + key, kTile,
                   shared.v + key * kHeadDim + 4 * x);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float inverse = shared.inverse[4 * y + i];
    store(p.out + (row + 4 * y + i) * kHeadDim + 4 * x,
          make_float4(sums[i][0] * inverse, sums[i][1] * inverse, sums[i][2] * inverse,
                      sums[i][3] * inverse));
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  cuda_check(cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Shared))));
  return [p, stream = cuda.stream] {
    const dim3 blocks(static_cast<unsigned>(p.queries / kTile), static_cast<unsigned>(p.heads));
    attend<<<blocks, kThreads, sizeof(Shared), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::flash_attention::cuda
