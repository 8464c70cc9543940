// Eight lanes hold one head of one token: each has four dims and the four that rotate with them, so
// that loads are 16 bytes and the amax of an fp8 row is three shuffles.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/attention/kv_cache.h"

namespace gauntlet::kernels::cuda::inline attention {

inline constexpr int kHeadLanes = 8;
inline constexpr int kHalfHead = kHeadDim / 2;
inline constexpr float kFp8Max = 448;
static_assert(kHeadLanes * 4 == kHalfHead, "a lane holds four pairs");

/// Dims 4l to 4l + 3 and those 32 further on.
struct Quads {
  float4 low, high;
};

/// {cos, sin} of a lane's four pairs.
struct Factors {
  float4 first, second;
};

__device__ __forceinline__ Factors load_factors(const float2* rope) {
  const auto* from = reinterpret_cast<const float4*>(rope);
  return {.first = from[0], .second = from[1]};
}

/// Both results are written as one product and one fused sum, so that every kernel rounds alike.
__device__ __forceinline__ void rotate(float& low, float& high, float cosine, float sine) {
  const float turned = fmaf(low, cosine, -(high * sine));
  high = fmaf(high, cosine, low * sine);
  low = turned;
}

__device__ __forceinline__ Quads rotate(Quads x, const Factors& by) {
  rotate(x.low.x, x.high.x, by.first.x, by.first.y);
  rotate(x.low.y, x.high.y, by.first.z, by.first.w);
  rotate(x.low.z, x.high.z, by.second.x, by.second.y);
  rotate(x.low.w, x.high.w, by.second.z, by.second.w);
  return x;
}

__device__ __forceinline__ Quads rotate(const Quads& x, const float2* rope) {
  return rotate(x, load_factors(rope));
}

struct Bf16Quads {
  uint2 low, high;
};

/// e4m3, and the scale of the whole row.
struct Fp8Quads {
  std::uint32_t low, high;
  float scale;
};

__device__ __forceinline__ Bf16Quads to_bf16(const Quads& x) {
  const auto pack = [](const float4& f) {
    return make_uint2(pack_bf16(f.x, f.y), pack_bf16(f.z, f.w));
  };
  return {.low = pack(x.low), .high = pack(x.high)};
}

__device__ __forceinline__ float largest(const float4& f) {
  return fmaxf(fmaxf(fabsf(f.x), fabsf(f.y)), fmaxf(fabsf(f.z), fabsf(f.w)));
}

/// The eight lanes of a row call this together; other rows of the warp may be elsewhere.
__device__ __forceinline__ Fp8Quads to_fp8(const Quads& x) {
  const unsigned row_lanes = 0xFFu << (threadIdx.x & (32 - kHeadLanes));
  float amax = fmaxf(largest(x.low), largest(x.high));
#pragma unroll
  for (int step = 1; step < kHeadLanes; step *= 2) {
    amax = fmaxf(amax, __shfl_xor_sync(row_lanes, amax, step));
  }
  const float inverse = amax > 0 ? kFp8Max / amax : 0;
  const auto pack = [&](const float4& f) {
    const __nv_fp8x4_e4m3 packed(
        make_float4(f.x * inverse, f.y * inverse, f.z * inverse, f.w * inverse));
    return packed.__x;
  };
  return {.low = pack(x.low), .high = pack(x.high), .scale = amax / kFp8Max};
}

__device__ __forceinline__ void store_bf16(__nv_bfloat16* row, int lane, const Bf16Quads& x) {
  reinterpret_cast<uint2*>(row)[lane] = x.low;
  reinterpret_cast<uint2*>(row + kHalfHead)[lane] = x.high;
}
__device__ __forceinline__ void store_bf16(__nv_bfloat16* row, int lane, const Quads& x) {
  store_bf16(row, lane, to_bf16(x));
}

__device__ __forceinline__ Quads load_quads(const float* row, int lane) {
  const auto* from = reinterpret_cast<const float4*>(row);
  return {.low = from[lane], .high = from[lane + kHeadLanes]};
}

struct TokenPlace {
  int sequence;
  int position;
};

__device__ __forceinline__ TokenPlace place_of(const AttentionBatch& batch, int token) {
  const int sequence = batch.token_sequence[token];
  return {.sequence = sequence,
          .position = batch.context[sequence] + token - batch.first_token[sequence]};
}

enum class RowKind { key, value };

/// A row of 64 of a layer's keys or values.
struct CacheRow {
  void* elements;  // of all rows
  float* scales;   // fp8 only
  std::int64_t row;
};

__device__ __forceinline__ CacheRow cache_row(const KvCache& cache, RowKind kind,
                                              std::int64_t row) {
  if (kind == RowKind::key) return {.elements = cache.k, .scales = cache.k_scale, .row = row};
  return {.elements = cache.v, .scales = cache.v_scale, .row = row};
}

__device__ __forceinline__ void store_row(const CacheRow& to, int lane, const Bf16Quads& x) {
  store_bf16(static_cast<__nv_bfloat16*>(to.elements) + to.row * kHeadDim, lane, x);
}
__device__ __forceinline__ void store_row(const CacheRow& to, int lane, const Fp8Quads& x) {
  std::uint8_t* const row = static_cast<std::uint8_t*>(to.elements) + to.row * kHeadDim;
  reinterpret_cast<std::uint32_t*>(row)[lane] = x.low;
  reinterpret_cast<std::uint32_t*>(row + kHalfHead)[lane] = x.high;
  if (lane == 0) to.scales[to.row] = x.scale;
}

/// Rows 0 to kv_heads - 1 are a token's keys, then come its values.
__device__ __forceinline__ void store_row(const KvCache& cache, const AttentionBatch& batch,
                                          const TokenPlace& place, int kv_row_of_token, int lane,
                                          const Quads& x) {
  const int page =
      batch.table[std::int64_t{place.sequence} * batch.table_stride + place.position / kPageTokens];
  if (page < 0) return;
  const RowKind kind = kv_row_of_token < cache.num_kv_heads ? RowKind::key : RowKind::value;
  const CacheRow row =
      cache_row(cache, kind,
                kv_row(cache.num_kv_heads, page, kv_row_of_token % cache.num_kv_heads,
                       place.position % kPageTokens));
  if (cache.format == KvFormat::bf16) {
    store_row(row, lane, to_bf16(x));
  } else {
    store_row(row, lane, to_fp8(x));
  }
}

}  // namespace gauntlet::kernels::cuda::inline attention
