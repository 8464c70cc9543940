// Sixteen positions of a KV head in shared memory, in either format, and their products with the
// query heads, which are the rows of one tensor-core tile.
#pragma once
#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/attention/rope_kv.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::kernels::cuda::inline attention {

inline constexpr int kPieceTokens = 16;
inline constexpr int kDimBlocks = kHeadDim / 8;
inline constexpr int kDimSteps = kHeadDim / 16;
static_assert(kMaxGroup == 8, "the upper half of a 16-row tile holds the heads");

template <KvFormat kFormat>
struct Piece;

template <>
struct Piece<KvFormat::bf16> {
  uint4 k[kPieceTokens * kRowChunks];
  uint4 v[kPieceTokens * kRowChunks];
};

template <>
struct Piece<KvFormat::fp8> {
  uint4 k[kPieceTokens * kFp8RowChunks];
  uint4 v[kPieceTokens * kFp8RowChunks];
  float k_scale[kPieceTokens];
  float v_scale[kPieceTokens];
};

/// Place of a chunk of an fp8 row: two rows share a 128-byte line, and the eight-byte reads of four
/// even rows fall into different banks.
__device__ __forceinline__ int fp8_place(int row, int chunk) {
  const int line = row / 2;
  return line * 8 + ((row % 2 * kFp8RowChunks + chunk) ^ (line % 4 * 2));
}

/// Eight lanes put a row into a tile of bf16 rows.
__device__ __forceinline__ void put_row(uint4* tile, int row, int head_lane, const Bf16Quads& x) {
  uint4* const low = tile + swizzled(row, head_lane / 2);
  uint4* const high = tile + swizzled(row, kRowChunks / 2 + head_lane / 2);
  reinterpret_cast<uint2*>(low)[head_lane % 2] = x.low;
  reinterpret_cast<uint2*>(high)[head_lane % 2] = x.high;
}

/// Lanes 0 to 7 put a row of keys, lanes 8 to 15 one of values.
__device__ __forceinline__ void put_position(Piece<KvFormat::bf16>& piece, int row, int lane,
                                             const Bf16Quads& x) {
  put_row(lane < kHeadLanes ? piece.k : piece.v, row, lane % kHeadLanes, x);
}
__device__ __forceinline__ void put_position(Piece<KvFormat::fp8>& piece, int row, int lane,
                                             const Fp8Quads& x) {
  const bool is_k = lane < kHeadLanes;
  const int head_lane = lane % kHeadLanes;
  uint4* const tile = is_k ? piece.k : piece.v;
  uint4* const low = tile + fp8_place(row, head_lane / 4);
  uint4* const high = tile + fp8_place(row, kFp8RowChunks / 2 + head_lane / 4);
  reinterpret_cast<std::uint32_t*>(low)[head_lane % 4] = x.low;
  reinterpret_cast<std::uint32_t*>(high)[head_lane % 4] = x.high;
  if (head_lane == 0) (is_k ? piece.k_scale : piece.v_scale)[row] = x.scale;
}

/// Query heads, rows of a bf16 tile, as the left operand; bf16 keys come by ldmatrix in its order,
/// fp8 keys as 16 neighbouring dims to a lane, so that dim 16 (lane % 4) + 4 step + i is what the
/// lane multiplies.
template <KvFormat kFormat>
__device__ __forceinline__ void read_q(std::uint32_t (&q)[kDimSteps][4], const uint4* tile,
                                       int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    std::uint32_t words[4];
    if constexpr (kFormat == KvFormat::bf16) {
      ptx::ldmatrix_x4(words, tile + swizzled(lane % 8, 4 * half + lane / 8));
    } else {
      const uint4 chunk = tile[swizzled(lane / 4, lane % 4 * 2 + half)];
      words[0] = chunk.x, words[1] = chunk.y, words[2] = chunk.z, words[3] = chunk.w;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      std::uint32_t(&step)[4] = q[2 * half + i];
      step[0] = words[2 * i], step[1] = 0, step[2] = words[2 * i + 1], step[3] = 0;
    }
  }
}

__device__ __forceinline__ void multiply_keys(float (&s)[2][4],
                                              const std::uint32_t (&q)[kDimSteps][4],
                                              const Piece<KvFormat::bf16>& piece, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, piece.k + swizzled(n * 8 + lane % 8, 4 * half + lane / 8));
      ptx::mma_m16n8k16_bf16(s[n], q[2 * half], {b[0], b[1]});
      ptx::mma_m16n8k16_bf16(s[n], q[2 * half + 1], {b[2], b[3]});
    }
  }
}

__device__ __forceinline__ void multiply_keys(float (&s)[2][4],
                                              const std::uint32_t (&q)[kDimSteps][4],
                                              const Piece<KvFormat::fp8>& piece, int lane) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const uint4 row = piece.k[fp8_place(n * 8 + lane / 4, lane % 4)];
    const std::uint32_t words[kDimSteps] = {row.x, row.y, row.z, row.w};
#pragma unroll
    for (int step = 0; step < kDimSteps; ++step) {
      ptx::mma_m16n8k16_bf16(s[n], q[step],
                             {fp8_low_to_bf16(words[step]), fp8_high_to_bf16(words[step])});
    }
    const float2 scale = *reinterpret_cast<const float2*>(piece.k_scale + n * 8 + lane % 4 * 2);
    s[n][0] *= scale.x, s[n][1] *= scale.y;
  }
}

__device__ __forceinline__ void multiply_values(float (&out)[kDimBlocks][4], const float (&s)[2][4],
                                                const Piece<KvFormat::bf16>& piece, int lane) {
  const std::uint32_t p[4] = {pack_bf16(s[0][0], s[0][1]), 0, pack_bf16(s[1][0], s[1][1]), 0};
#pragma unroll
  for (int n = 0; n < kDimBlocks; n += 2) {
    std::uint32_t b[4];
    ptx::ldmatrix_x4_trans(b, piece.v + swizzled(lane % 16, n + lane / 16));
    ptx::mma_m16n8k16_bf16(out[n], p, {b[0], b[1]});
    ptx::mma_m16n8k16_bf16(out[n + 1], p, {b[2], b[3]});
  }
}

/// Column c of block n is dim 8c + n: a lane reads eight neighbouring dims of its four tokens, and
/// block n takes byte n of each.
__device__ __forceinline__ void multiply_values(float (&out)[kDimBlocks][4], const float (&s)[2][4],
                                                const Piece<KvFormat::fp8>& piece, int lane) {
  std::uint32_t p[4] = {};
  std::uint32_t words[2][2][2];  // [block of tokens][token of a pair][dims 0 to 3, 4 to 7]
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int token = half * 8 + lane % 4 * 2;
    const float2 scale = *reinterpret_cast<const float2*>(piece.v_scale + token);
    p[2 * half] = pack_bf16(s[half][0] * scale.x, s[half][1] * scale.y);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4* const chunk = piece.v + fp8_place(token + i, lane / 8);
      const uint2 eight = reinterpret_cast<const uint2*>(chunk)[lane / 4 % 2];
      words[half][i][0] = eight.x, words[half][i][1] = eight.y;
    }
  }
#pragma unroll
  for (int n = 0; n < kDimBlocks; ++n) {
    // Byte n % 4 of the pair's words, to the high byte of either half; what lies below is dropped.
    const unsigned pick = n % 4 * 0x1010 + 0x4000;
    std::uint32_t b[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      b[half] = fp8_pair_to_bf16(__byte_perm(words[half][0][n / 4], words[half][1][n / 4], pick));
    }
    ptx::mma_m16n8k16_bf16(out[n], p, b);
  }
}

/// Two pairs of neighbouring dims, the first dim of each.
struct SlotDims {
  std::uint32_t pair[2];
  int dim[2];
};
template <KvFormat kFormat>
__device__ __forceinline__ SlotDims slot_dims(const float4& x, int slot, int lane) {
  if constexpr (kFormat == KvFormat::bf16) {
    const int dim = slot * 16 + lane % 4 * 2;
    return {.pair = {pack_bf16(x.x, x.y), pack_bf16(x.z, x.w)}, .dim = {dim, dim + 8}};
  } else {
    const int dim = lane % 4 * 16 + slot * 2;
    return {.pair = {pack_bf16(x.x, x.z), pack_bf16(x.y, x.w)}, .dim = {dim, dim + 8}};
  }
}

}  // namespace gauntlet::kernels::cuda::inline attention
