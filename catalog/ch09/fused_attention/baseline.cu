// Three kernels: the scores of every query and key, the softmax of their rows, and the product with
// the values.
#include <cuda_runtime.h>

#include "catalog/ch09/fused_attention/pair.h"
#include "catalog/ch09/fused_attention/tiles.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::fused_attention::cuda {
namespace {

constexpr int kTile = 64;  // queries, and keys, of a block
constexpr int kPitch = kTile + 4;
static_assert(kTile == kHeadDim && kTile * kTile == 16 * kThreads);

/// A block per 64 queries and 64 keys of a head; a thread has four of each.
__global__ void __launch_bounds__(kThreads) scores_of(Params p) {
  __shared__ alignas(16) float q[kHeadDim][kPitch];  // a query is a column
  __shared__ alignas(16) float k[kHeadDim][kTile];
  const int thread = static_cast<int>(threadIdx.x), x = thread % 16, y = thread / 16;
  const std::int64_t head = blockIdx.z;
  const std::int64_t row = head * p.queries + std::int64_t{blockIdx.y} * kTile;
  const std::int64_t first_key = std::int64_t{blockIdx.x} * kTile;
  load_transposed<kTile>(q[0], kPitch, p.q + row * kHeadDim);
  load_tile<kHeadDim, kTile>(k[0], p.k + head * kHeadDim * p.keys + first_key, p.keys);
  __syncthreads();
  float sums[4][4] = {};
#pragma unroll 8
  for (int d = 0; d < kHeadDim; ++d) add_outer(sums, load(&q[d][4 * y]), load(&k[d][4 * x]));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    store(p.scores + (row + 4 * y + i) * p.keys + first_key + 4 * x,
          make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
  }
}

constexpr int kWarps = kThreads / 32;
constexpr int kVectors = (kMaxKeys + 4 * kThreads - 1) / (4 * kThreads);

/// The same in all threads.
template <class Operation>
__device__ float over_block(float value, float (&partial)[kWarps], Operation operation) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = operation(value, __shfl_xor_sync(~0u, value, offset));
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = partial[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) value = operation(value, partial[warp]);
  return value;
}

/// A block per row, which is in registers in between.
__global__ void __launch_bounds__(kThreads) softmax_of(Params p) {
  __shared__ float tops[kWarps], totals[kWarps];
  float* row = p.scores + std::int64_t{blockIdx.x} * p.keys;
  float4 s[kVectors];
  float top = -INFINITY, sum = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t i = 4 * (std::int64_t{v} * kThreads + threadIdx.x);
    if (i >= p.keys) continue;
    s[v] = load(row + i);
    top = fmaxf(top, fmaxf(fmaxf(s[v].x, s[v].y), fmaxf(s[v].z, s[v].w)));
  }
  top = over_block(top, tops, [](float a, float b) { return fmaxf(a, b); });
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t i = 4 * (std::int64_t{v} * kThreads + threadIdx.x);
    if (i >= p.keys) continue;
    s[v] = exponentials(s[v], top);
    sum += (s[v].x + s[v].y) + (s[v].z + s[v].w);
  }
  const float inverse = 1 / over_block(sum, totals, [](float a, float b) { return a + b; });
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const std::int64_t i = 4 * (std::int64_t{v} * kThreads + threadIdx.x);
    if (i >= p.keys) continue;
    store(row + i,
          make_float4(s[v].x * inverse, s[v].y * inverse, s[v].z * inverse, s[v].w * inverse));
  }
}

/// A block per 64 queries of a head; a thread has four queries and four columns.
__global__ void __launch_bounds__(kThreads) values_of(Params p) {
  __shared__ alignas(16) float given[kTile * kTile];
  __shared__ alignas(16) float v[kTile * kHeadDim];
  const int thread = static_cast<int>(threadIdx.x), x = thread % 16, y = thread / 16;
  const std::int64_t head = blockIdx.y;
  const std::int64_t row = head * p.queries + std::int64_t{blockIdx.x} * kTile;
  float sums[4][4] = {};
  for (std::int64_t first = 0; first < p.keys; first += kTile) {
    __syncthreads();
    load_tile<kTile, kTile>(given, p.scores + row * p.keys + first, p.keys);
    load_tile<kTile, kHeadDim>(v, p.v + (head * p.keys + first) * kHeadDim, kHeadDim);
    __syncthreads();
#pragma unroll 4
    for (int key = 0; key < kTile; key += 4) {
      add_weighted(sums, given + 4 * y * kTile + key, kTile, v + key * kHeadDim + 4 * x);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    store(p.out + (row + 4 * y + i) * kHeadDim + 4 * x,
          make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto heads = static_cast<unsigned>(p.heads);
    const auto query_tiles = static_cast<unsigned>(p.queries / kTile);
    const auto key_tiles = static_cast<unsigned>(p.keys / kTile);
    scores_of<<<dim3(key_tiles, query_tiles, heads), kThreads, 0, stream>>>(p);
    softmax_of<<<static_cast<unsigned>(p.heads * p.queries), kThreads, 0, stream>>>(p);
    values_of<<<dim3(query_tiles, heads), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::fused_attention::cuda
