// Eight lanes hold one head of one token: each has four dims and the four that rotate with them, so
// that loads are 16 bytes and the amax of an fp8 row is three shuffles.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/kv_cache.h"

namespace gauntlet::kernels::cuda {

inline constexpr int kHeadLanes = 8;
inline constexpr int kHalfHead = kHeadDim / 2;
inline constexpr float kFp8Max = 448;
static_assert(kHeadLanes * 4 == kHalfHead, "a lane holds four pairs");

/// Dims 4l to 4l + 3 and those 32 further on.
struct Quads {
  float4 low, high;
};

__device__ __forceinline__ Quads rotate(const Quads& x, const float2* rope) {
  const float4 a = reinterpret_cast<const float4*>(rope)[0];  // cos, sin, cos, sin
  const float4 b = reinterpret_cast<const float4*>(rope)[1];
  return {.low = {x.low.x * a.x - x.high.x * a.y, x.low.y * a.z - x.high.y * a.w,
                  x.low.z * b.x - x.high.z * b.y, x.low.w * b.z - x.high.w * b.w},
          .high = {x.high.x * a.x + x.low.x * a.y, x.high.y * a.z + x.low.y * a.w,
                   x.high.z * b.x + x.low.z * b.y, x.high.w * b.z + x.low.w * b.w}};
}

__device__ __forceinline__ void store_bf16(__nv_bfloat16* row, int lane, const Quads& x) {
  const auto pack = [](const float4& f) {
    return make_uint2(pack_bf16(f.x, f.y), pack_bf16(f.z, f.w));
  };
  reinterpret_cast<uint2*>(row)[lane] = pack(x.low);
  reinterpret_cast<uint2*>(row + kHalfHead)[lane] = pack(x.high);
}

__device__ __forceinline__ float largest(const float4& f) {
  return fmaxf(fmaxf(fabsf(f.x), fabsf(f.y)), fmaxf(fabsf(f.z), fabsf(f.w)));
}

/// The eight lanes of a row call this together; other rows of the warp may be elsewhere.
__device__ __forceinline__ void store_fp8(std::uint8_t* row, float* scale, int lane,
                                          const Quads& x) {
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
  reinterpret_cast<std::uint32_t*>(row)[lane] = pack(x.low);
  reinterpret_cast<std::uint32_t*>(row + kHalfHead)[lane] = pack(x.high);
  if (lane == 0) *scale = amax / kFp8Max;
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

/// Rows 0 to kv_heads - 1 are a token's keys, then come its values.
__device__ __forceinline__ void store_row(const KvCache& cache, const AttentionBatch& batch,
                                          const TokenPlace& place, int kv_row_of_token, int lane,
                                          const Quads& x) {
  const int page =
      batch.table[std::int64_t{place.sequence} * batch.table_stride + place.position / kPageTokens];
  if (page < 0) return;
  const bool is_v = kv_row_of_token >= cache.num_kv_heads;
  const std::int64_t row = kv_row(cache.num_kv_heads, page, kv_row_of_token % cache.num_kv_heads,
                                  place.position % kPageTokens);
  void* const to = is_v ? cache.v : cache.k;
  if (cache.format == KvFormat::bf16) {
    store_bf16(static_cast<__nv_bfloat16*>(to) + row * kHeadDim, lane, x);
  } else {
    store_fp8(static_cast<std::uint8_t*>(to) + row * kHeadDim,
              (is_v ? cache.v_scale : cache.k_scale) + row, lane, x);
  }
}

}  // namespace gauntlet::kernels::cuda
