// Tiles of attention in shared memory, and products of them by 256 threads with four by four sums
// each, as both sides on a GPU use them.
#pragma once
#include <cstdint>

#include "catalog/ch10/flash_attention/pair.h"

namespace gauntlet::ch10::flash_attention::cuda {

inline constexpr int kThreads = 256;

__device__ __forceinline__ float4 load(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ __forceinline__ void store(float* to, float4 v) { *reinterpret_cast<float4*>(to) = v; }

/// `rows` rows of kColumns words, `pitch` apart in memory, one behind the other in shared memory.
template <int kRows, int kColumns>
__device__ __forceinline__ void load_tile(float* to, const float* from, std::int64_t pitch) {
  constexpr int kVectors = kColumns / 4;
  static_assert(kRows * kVectors % kThreads == 0);
#pragma unroll
  for (int i = 0; i < kRows * kVectors / kThreads; ++i) {
    const int at = i * kThreads + static_cast<int>(threadIdx.x);
    store(to + 4 * at, load(from + at / kVectors * pitch + at % kVectors * 4));
  }
}

/// sums += outer products: four words of `a`, one per row of the result, by four of `b`.
__device__ __forceinline__ void add_outer(float (&sums)[4][4], float4 a, float4 b) {
  const float of_a[4] = {a.x, a.y, a.z, a.w}, of_b[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
  for (int row = 0; row < 4; ++row) {
#pragma unroll
    for (int column = 0; column < 4; ++column) sums[row][column] += of_a[row] * of_b[column];
  }
}

/// kRows queries turned round: a query is a column of `to`.
template <int kRows>
__device__ __forceinline__ void load_transposed(float* to, int pitch, const float* from) {
  constexpr int kVectors = kHeadDim / 4;
  static_assert(kRows * kVectors % kThreads == 0);
#pragma unroll
  for (int i = 0; i < kRows * kVectors / kThreads; ++i) {
    const int at = i * kThreads + static_cast<int>(threadIdx.x);
    const int row = at / kVectors, column = at % kVectors * 4;
    const float4 v = load(from + 4 * at);
    to[column * pitch + row] = v.x;
    to[(column + 1) * pitch + row] = v.y;
    to[(column + 2) * pitch + row] = v.z;
    to[(column + 3) * pitch + row] = v.w;
  }
}

/// sums += what kRows rows of weights, `pitch` apart, give to four keys, times four words of each
/// key's value.
template <int kRows>
__device__ __forceinline__ void add_weighted(float (&sums)[kRows][4], const float* weights,
                                             int pitch, const float* values) {
  float4 v[4];
#pragma unroll
  for (int key = 0; key < 4; ++key) v[key] = load(values + key * kHeadDim);
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const float4 w = load(weights + row * pitch);
    const float of_key[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int key = 0; key < 4; ++key) {
      sums[row][0] += of_key[key] * v[key].x;
      sums[row][1] += of_key[key] * v[key].y;
      sums[row][2] += of_key[key] * v[key].z;
      sums[row][3] += of_key[key] * v[key].w;
    }
  }
}

/// e^(x·kScale)
__device__ __forceinline__ float exponential(float x) {
  constexpr float kFactor = kScale * 1.44269504f;
  return exp2f(x * kFactor);
}

/// e^((s - top)·kScale)
__device__ __forceinline__ float4 exponentials(float4 s, float top) {
  return make_float4(exponential(s.x - top), exponential(s.y - top), exponential(s.z - top),
                     exponential(s.w - top));
}

}  // namespace gauntlet::ch10::flash_attention::cuda
