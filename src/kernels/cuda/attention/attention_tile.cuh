// What the attention kernels share: tiles of 64 bf16 per row in shared memory, numbers in the
// exponent's base, fp8 made bf16, checks of the arguments.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

#include "core/check.h"
#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/bf16_pair.cuh"

namespace gauntlet::kernels::cuda::inline attention {

inline constexpr float kLog2e = 1.4426950408889634f;
inline constexpr float kScoreScale = 0.125f * kLog2e;  // exp(q·k / 8) = exp2(q·k * kScoreScale)
inline constexpr float kLowest = -1e30f;  // below any logit, and a difference of two is not NaN
inline constexpr float kHidden = -INFINITY;

/// Chunks of 16 bytes: of a row of 64 bf16, and of 64 fp8.
inline constexpr int kRowChunks = 8;
inline constexpr int kFp8RowChunks = 4;
static_assert(kHeadDim * 2 == kRowChunks * 16 && kHeadDim == kFp8RowChunks * 16);

/// Number of a chunk in a tile of bf16 rows. Eight rows' chunks of one column lie in different
/// banks.
__device__ __forceinline__ int swizzled(int row, int chunk) {
  return row * kRowChunks + (chunk ^ (row & 7));
}

/// Two e4m3 numbers, in the high bytes of both halves, to bf16. The seven bits below the sign, put
/// at a bf16's low exponent bits, are 2^-120 of the number, subnormals included.
__device__ __forceinline__ std::uint32_t fp8_pair_to_bf16(std::uint32_t bytes) {
  const std::uint32_t small = (bytes & 0x80008000u) | (bytes >> 4 & 0x07F007F0u);
  const __nv_bfloat162 unit = __floats2bfloat162_rn(0x1p120f, 0x1p120f);
  const __nv_bfloat162 pair = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&small), unit);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

/// Bytes 0 and 1 of a word, and bytes 2 and 3.
__device__ __forceinline__ std::uint32_t fp8_low_to_bf16(std::uint32_t word) {
  return fp8_pair_to_bf16(__byte_perm(word, 0, 0x1404));
}
__device__ __forceinline__ std::uint32_t fp8_high_to_bf16(std::uint32_t word) {
  return fp8_pair_to_bf16(__byte_perm(word, 0, 0x3424));
}

/// The sink as the first term of a row's sum: its logit in base 2, kept finite.
__device__ __forceinline__ float sink_logit(float sink) { return fmaxf(sink * kLog2e, kLowest); }

/// Query heads of one KV head; throws where a kernel could not run.
inline int checked_group(const Attention& attention) {
  const KvCache& cache = attention.cache;
  check(cache.num_kv_heads > 0 && attention.num_heads % cache.num_kv_heads == 0,
        "attention: query heads are not a multiple of KV heads");
  const int group = attention.num_heads / cache.num_kv_heads;
  check(group <= kMaxGroup && std::has_single_bit(static_cast<unsigned>(group)),
        "attention: 1, 2, 4 or 8 query heads share a KV head");
  check(cache.format == KvFormat::bf16 || (cache.k_scale && cache.v_scale),
        "attention: an fp8 cache needs scales");
  return group;
}

}  // namespace gauntlet::kernels::cuda::inline attention
