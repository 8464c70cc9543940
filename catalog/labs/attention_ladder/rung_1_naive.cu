// All scores of some heads go to memory, their softmax reads them and writes weights, and the
// product with the values reads those.
#include <cuda_runtime.h>

#include <algorithm>

#include "catalog/labs/attention_ladder/lab.h"
#include "catalog/labs/attention_ladder/mma_tiles.cuh"
#include "core/check.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::labs::attention_ladder::cuda {
namespace {

/// Products of 128 queries and 64 keys, unless all of these keys come later.
template <int kHeadDim>
__global__ void __launch_bounds__(kTileThreads) score_heads(Params p, int first_head) {
  __shared__ Tile<kTileQueries, kHeadDim> queries;
  __shared__ Tile<kTileKeys, kHeadDim> keys;
  const int first_key = static_cast<int>(blockIdx.x) * kTileKeys;
  const int first_query = static_cast<int>(blockIdx.y) * kTileQueries;
  if (first_key >= first_query + kTileQueries) return;
  const std::int64_t head_row = (first_head + std::int64_t{blockIdx.z}) * p.sequence;
  queries.load(p.q + (head_row + first_query) * kHeadDim);
  keys.load(p.k + (head_row + first_key) * kHeadDim);
  ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<0>();
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  float sums[kTileKeys / 8][4] = {};
#pragma unroll
  for (int d = 0; d < kHeadDim; d += 16) {
    std::uint32_t a[4];
    load_a(a, queries, warp * 16, d);
    multiply_rows<kTileKeys>(sums, a, keys, d);
  }
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const std::int64_t query = first_query + warp * 16 + lane / 4 + 8 * row;
    float* to = p.scores + (std::int64_t{blockIdx.z} * p.sequence + query) * p.sequence +
                first_key + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kTileKeys / 8; ++n) {
      *reinterpret_cast<float2*>(to + 8 * n) = make_float2(sums[n][2 * row], sums[n][2 * row + 1]);
    }
  }
}

template <class Operation>
__device__ __forceinline__ float over_block(float value, Operation operation) {
  __shared__ float of_warp[kWarps];
  for (int offset = 16; offset > 0; offset /= 2) {
    value = operation(value, __shfl_xor_sync(~0u, value, offset));
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < kWarps; ++warp) value = operation(value, of_warp[warp]);
  return value;
}

/// A block turns a row of scores into weights; those of later keys, up to the end of the tile that
/// the product reads, are 0.
__global__ void __launch_bounds__(kTileThreads) soften_rows(Params p, float scale) {
  const int query = static_cast<int>(blockIdx.x);
  const std::int64_t row = std::int64_t{blockIdx.y} * p.sequence + query;
  const float* scores = p.scores + row * p.sequence;
  Bf16* weights = p.weights + row * p.sequence;
  const int thread = static_cast<int>(threadIdx.x);
  float top = -INFINITY, sum = 0;
  for (int key = thread; key <= query; key += kTileThreads) top = fmaxf(top, scores[key]);
  top = over_block(top, [](float a, float b) { return fmaxf(a, b); });
  for (int key = thread; key <= query; key += kTileThreads) {
    sum += exp2f((scores[key] - top) * scale);
  }
  sum = over_block(sum, [](float a, float b) { return a + b; });
  const float inverse = 1 / sum;
  const int end = query / kTileQueries * kTileQueries + kTileQueries;
  for (int key = 2 * thread; key < end; key += 2 * kTileThreads) {
    const float2 s = *reinterpret_cast<const float2*>(scores + key);
    const float a = key <= query ? exp2f((s.x - top) * scale) * inverse : 0;
    const float b = key + 1 <= query ? exp2f((s.y - top) * scale) * inverse : 0;
    *reinterpret_cast<std::uint32_t*>(weights + key) = pack_pair(a, b);
  }
}

/// 128 queries' weights times the values of the keys that they see.
template <int kHeadDim>
__global__ void __launch_bounds__(kTileThreads) weigh_values(Params p, int first_head) {
  __shared__ Tile<kTileQueries, kTileKeys> weights;
  __shared__ Tile<kTileKeys, kHeadDim> values;
  const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTileQueries;
  const std::int64_t head_row = (first_head + std::int64_t{blockIdx.y}) * p.sequence;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  float sums[kHeadDim / 8][4] = {};
  for (int key = 0; key < first_query + kTileQueries; key += kTileKeys) {
    __syncthreads();
    weights.load(
        p.weights + (std::int64_t{blockIdx.y} * p.sequence + first_query) * p.sequence + key,
        p.sequence);
    values.load(p.v + (head_row + key) * kHeadDim);
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<0>();
    __syncthreads();
#pragma unroll
    for (int step = 0; step < kTileKeys; step += 16) {
      std::uint32_t a[4];
      load_a(a, weights, warp * 16, step);
      multiply_columns(sums, a, values, step);
    }
  }
  store_rows<kHeadDim>(p.out + (head_row + first_query + warp * 16) * kHeadDim, sums, {1, 1});
}

template <int kHeadDim>
void attend(const Params& p, cudaStream_t stream) {
  const auto key_tiles = static_cast<unsigned>(p.sequence / kTileKeys);
  const auto query_tiles = static_cast<unsigned>(p.sequence / kTileQueries);
  for (int head = 0; head < p.heads; head += kScoredHeads) {
    const auto heads = static_cast<unsigned>(std::min<int>(kScoredHeads, p.heads - head));
    score_heads<kHeadDim>
        <<<dim3(key_tiles, query_tiles, heads), kTileThreads, 0, stream>>>(p, head);
    soften_rows<<<dim3(static_cast<unsigned>(p.sequence), heads), kTileThreads, 0, stream>>>(
        p, p.log2_scale());
    weigh_values<kHeadDim><<<dim3(query_tiles, heads), kTileThreads, 0, stream>>>(p, head);
  }
  cuda_check(cudaGetLastError());
}

}  // namespace

lab::Side naive(const Params& p, const lab::Cuda& cuda) {
  if (p.head_dim == 64) return [p, stream = cuda.stream] { attend<64>(p, stream); };
  check(p.head_dim == 128, "rungs have heads of 64 and 128 dimensions");
  return [p, stream = cuda.stream] { attend<128>(p, stream); };
}

}  // namespace gauntlet::labs::attention_ladder::cuda
