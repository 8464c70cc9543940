// The pieces of attention by wgmma: what a configuration keeps in shared memory, products of a
// warpgroup's 64 queries with a block of keys or values, and the softmax of their scores in
// registers.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "catalog/labs/attention_ladder/attention_schedule.h"
#include "ptx/exp2.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_attention.cuh"
#include "ptx/wgmma_n128.cuh"

namespace gauntlet::labs::attention_ladder::cuda {

inline constexpr int kGroupThreads = 128;  // of a warpgroup
inline constexpr int kStepBytes = 32;      // along K of one wgmma

inline constexpr int kOutColumns = 64;  // of bf16 in the 128 bytes of a swizzled row
inline constexpr int kOutRowBytes = 128;

enum class Element { bf16, f8e4m3 };

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

template <Element kElement>
__device__ __forceinline__ void multiply_scores(float (&sums)[64], std::uint64_t q, std::uint64_t k,
                                                int scale_d) {
  if constexpr (kElement == Element::bf16) {
    ptx::wgmma_m64n128k16_bf16(sums, q, k, scale_d);
  } else {
    ptx::wgmma_m64n128k32_f8e4m3(sums, q, k, scale_d);
  }
}

/// scores = q·k of 64 queries and C::kKeys keys, whose rows lie in atoms of C::kRowBytes; issued
/// only.
template <class C>
__device__ __forceinline__ void issue_scores(float (&scores)[C::kKeys / 2], std::uint64_t q,
                                             std::uint64_t k) {
  constexpr int kSteps = C::kRowBytes / kStepBytes;  // of an atom
#pragma unroll
  for (int step = 0; step < C::kAtoms * kSteps; ++step) {
    const int atom = step / kSteps * (C::kRowBytes / 16), within = step % kSteps * 2;
    multiply_scores<C::kElement>(scores, q + atom * kGroupRows + within,
                                 k + atom * C::kKeys + within, step != 0);
  }
}

/// sums += weights·values; issued only. Values in bf16 lie as they are, a key in a row; those of 8
/// bits are turned round, a dimension in a row.
template <class C>
__device__ __forceinline__ void issue_values(
    float (&sums)[C::kHeadDim / 2], const std::uint32_t (&weights)[C::kKeys * C::kElementBytes / 8],
    std::uint64_t v) {
  constexpr int kStepKeys = kStepBytes / C::kElementBytes;
#pragma unroll
  for (int step = 0; step < C::kKeys / kStepKeys; ++step) {
    const std::uint32_t* a = weights + 4 * step;
    if constexpr (C::kElement == Element::bf16) {
      const std::uint64_t rows = v + step * (kStepKeys * 128 / 16);
      if constexpr (C::kHeadDim == 64) ptx::wgmma_m64n64k16_bf16_rows(sums, a, rows);
      if constexpr (C::kHeadDim == 128) ptx::wgmma_m64n128k16_bf16_rows(sums, a, rows);
    } else {
      if constexpr (C::kHeadDim == 64) ptx::wgmma_m64n64k32_f8e4m3_columns(sums, a, v + 2 * step);
      if constexpr (C::kHeadDim == 128) ptx::wgmma_m64n128k32_f8e4m3_columns(sums, a, v + 2 * step);
    }
  }
}

__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(both);
}

__device__ __forceinline__ std::uint32_t pack_f8(float a, float b, float c, float d) {
  const auto low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
  const auto high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, __NV_E4M3);
  return std::uint32_t{low} | std::uint32_t{high} << 16;
}

/// A thread's sums, rounded, become its registers of the A operand of the next product.
template <class C>
__device__ __forceinline__ void pack_weights(
    std::uint32_t (&weights)[C::kKeys * C::kElementBytes / 8], const float (&s)[C::kKeys / 2]) {
#pragma unroll
  for (int i = 0; i < C::kKeys * C::kElementBytes / 8; ++i) {
    const auto sum = [&](int place) { return s[operand_sum<C::kElementBytes>(i, place)]; };
    if constexpr (C::kElement == Element::bf16) {
      weights[i] = pack(sum(0), sum(1));
    } else {
      weights[i] = pack_f8(sum(0), sum(1), sum(2), sum(3));
    }
  }
}

/// Of a lane's two rows, g and g + 8 of its warp's 16.
struct Rows {
  float top[2];  // greatest score so far, of the whole row
  float sum[2];  // of this lane's weights
};

/// Greatest of a row's lanes, which are four neighbours.
__device__ __forceinline__ float over_row(float value) {
  value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
  return fmaxf(value, __shfl_xor_sync(~0u, value, 2));
}

/// Scores become weights 2^((score - top)·scale); `shrink` is what earlier sums are multiplied
/// with. A row without a key that it may see weighs nothing and shrinks to nothing. Weights of 8
/// bits are 2^kRaised times as large, which the division by their sum takes back: so that fewer of
/// them are below what the type can tell from 0.
template <int kKeys, int kRaised>
__device__ __forceinline__ void soften(Rows& rows, float (&shrink)[2], float (&scores)[kKeys / 2],
                                       float scale) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float tops[4] = {rows.top[row], -INFINITY, -INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i) {
      const float both = fmaxf(scores[4 * i + 2 * row], scores[4 * i + 2 * row + 1]);
      tops[i % 4] = fmaxf(tops[i % 4], both);
    }
    const float top = over_row(fmaxf(fmaxf(tops[0], tops[1]), fmaxf(tops[2], tops[3])));
    const float base = top == -INFINITY ? 0.0f : top * scale;
    shrink[row] = ptx::exp2_approx(fmaf(rows.top[row], scale, -base));
    rows.top[row] = top;
    float sums[2] = {rows.sum[row] * shrink[row], 0};
#pragma unroll
    for (int i = 0; i < kKeys / 8; ++i) {
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        float& word = scores[4 * i + 2 * row + column];
        const float x = fmaf(word, scale, kRaised - base);
        word = ptx::exp2_approx(x);
        sums[column] += word;
      }
    }
    rows.sum[row] = sums[0] + sums[1];
  }
}

template <int kHeadDim>
__device__ __forceinline__ void scale_rows(float (&sums)[kHeadDim / 2], const float (&by)[2]) {
#pragma unroll
  for (int i = 0; i < kHeadDim / 2; ++i) sums[i] *= by[i / 2 % 2];
}

/// Keys behind a query count as -infinity. `distance` is the warpgroup's first query less the
/// block's first key.
template <int kKeys>
__device__ __forceinline__ void mask_later_keys(float (&scores)[kKeys / 2], int distance) {
  const int thread = static_cast<int>(threadIdx.x) % kGroupThreads;
  const int first = distance + sum_row(thread, 0) - sum_column(thread, 0);
#pragma unroll
  for (int i = 0; i < kKeys / 2; ++i) {
    if (sum_column(0, i) - sum_row(0, i) > first) scores[i] = -INFINITY;
  }
}

}  // namespace gauntlet::labs::attention_ladder::cuda
