// bf16 → e4m3: queries and keys as they are, values turned round, because a product in 8 bits takes
// both operands K-major.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/attention_ladder/attention_schedule.h"
#include "core/narrow_floats.h"

namespace gauntlet::labs::attention_ladder_fp8::cuda {

inline constexpr int kNarrowThreads = 256;
inline constexpr int kTurnedKeys = 128;  // of a block

__device__ __forceinline__ std::uint32_t narrow_4(uint2 four) {
  const auto low = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(four.x));
  const auto high = __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(four.y));
  return std::uint32_t{__nv_cvt_float2_to_fp8x2(low, __NV_SATFINITE, __NV_E4M3)} |
         std::uint32_t{__nv_cvt_float2_to_fp8x2(high, __NV_SATFINITE, __NV_E4M3)} << 16;
}

/// 16 words a thread.
__device__ __forceinline__ void narrow_words(F8e4m3* to, const Bf16* from, std::int64_t words) {
  const std::int64_t at =
      16 * (std::int64_t{blockIdx.x} * kNarrowThreads + static_cast<int>(threadIdx.x));
  if (at >= words) return;
  const uint4 a = *reinterpret_cast<const uint4*>(from + at);
  const uint4 b = *reinterpret_cast<const uint4*>(from + at + 8);
  *reinterpret_cast<uint4*>(to + at) =
      make_uint4(narrow_4(make_uint2(a.x, a.y)), narrow_4(make_uint2(a.z, a.w)),
                 narrow_4(make_uint2(b.x, b.y)), narrow_4(make_uint2(b.z, b.w)));
}

__global__ void __launch_bounds__(kNarrowThreads)
    narrow_queries_and_keys(F8e4m3* q8, F8e4m3* k8, const Bf16* q, const Bf16* k,
                            std::int64_t words) {
  if (blockIdx.y == 0) {
    narrow_words(q8, q, words);
  } else {
    narrow_words(k8, k, words);
  }
}

/// 128 keys of a head: rows of dimensions become rows of keys, each 32 of them in the order in
/// which a thread's weights come (value_key()).
template <int kHeadDim>
__global__ void __launch_bounds__(kNarrowThreads)
    narrow_and_turn_values(F8e4m3* v8, const Bf16* v, int sequence) {
  constexpr int kPitch = kHeadDim + 4;  // neighbouring keys are a bank apart
  __shared__ std::uint8_t tile[kTurnedKeys * kPitch];
  const int thread = static_cast<int>(threadIdx.x),
            first = static_cast<int>(blockIdx.x) * kTurnedKeys;
  const std::int64_t head = blockIdx.y;
  const Bf16* from = v + (head * sequence + first) * kHeadDim;
#pragma unroll
  for (int i = thread; i < kTurnedKeys * kHeadDim / 4; i += kNarrowThreads) {
    const int key = 4 * i / kHeadDim, d = 4 * i % kHeadDim;
    *reinterpret_cast<std::uint32_t*>(tile + key * kPitch + d) =
        narrow_4(*reinterpret_cast<const uint2*>(from + 4 * i));
  }
  __syncthreads();
  // A warp's threads have neighbouring dimensions: bytes of eight words, each broadcast to four.
#pragma unroll
  for (int i = thread; i < kTurnedKeys / 16 * kHeadDim; i += kNarrowThreads) {
    const int d = i % kHeadDim, part = i / kHeadDim;
    std::uint32_t words[4];
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      words[word] = 0;
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) {
        const int place = part % 2 * 16 + word * 4 + byte;
        const int key = part / 2 * 32 + attention_ladder::value_key(place);
        words[word] |= std::uint32_t{tile[key * kPitch + d]} << (8 * byte);
      }
    }
    *reinterpret_cast<uint4*>(v8 + (head * kHeadDim + d) * sequence + first + part * 16) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

}  // namespace gauntlet::labs::attention_ladder_fp8::cuda
