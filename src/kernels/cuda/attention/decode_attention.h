// Attention of one new token per sequence: bound by reading keys and values, so the positions of a
// sequence are split over blocks until the GPU is full, and the parts are joined in a fixed order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/launch_how.h"

namespace gauntlet::kernels::cuda::inline attention {

/// Below this, joining parts costs more than the shorter walk saves.
inline constexpr int kMinPagesPerSplit = 12;
inline constexpr int kDecodeBlocksPerSm = 2;
inline constexpr int kDecodeWaves = 2;
/// Sum, maximum and 64 floats for each of up to 8 heads.
inline constexpr std::size_t kDecodePartialBytes = kMaxGroup * (kHeadDim + 2) * sizeof(float);

struct DecodeShape {
  int num_sequences = 0;
  int num_kv_heads = 0;
  int max_context = 0;
  int window = 0;
  int num_sms = 0;
};

constexpr int pages_of(int positions) { return (positions + kPageTokens - 1) / kPageTokens; }

/// Pages that one block walks. Where a sequence is cut depends on this number and on the sequence
/// alone: a caller that fixes it gets the same bits in any company.
constexpr int choose_pages_per_split(const DecodeShape& shape) {
  const int pages = std::max(1, pages_of(shape.max_context));
  if (shape.window > 0) return pages;
  const int blocks = std::max(1, shape.num_sequences * shape.num_kv_heads);
  const int wanted = kDecodeWaves * kDecodeBlocksPerSm * shape.num_sms;
  const int splits = std::clamp((wanted + blocks - 1) / blocks, 1, pages);
  return std::max((pages + splits - 1) / splits, std::min(kMinPagesPerSplit, pages));
}

/// A sliding layer's window is never split.
constexpr int decode_splits(const DecodeShape& shape, int pages_per_split) {
  if (shape.window > 0) return 1;
  return std::max(1, (pages_of(shape.max_context) + pages_per_split - 1) / pages_per_split);
}

constexpr std::size_t decode_partial_bytes(const DecodeShape& shape, int pages_per_split) {
  const int splits = decode_splits(shape, pages_per_split);
  if (splits == 1) return 0;
  return std::size_t{kDecodePartialBytes} * static_cast<std::size_t>(shape.num_sequences) *
         static_cast<std::size_t>(shape.num_kv_heads) * static_cast<std::size_t>(splits);
}

/// The keys and values that a block has under way: a shallow ring leaves room for a second block on
/// its SM; a deep one holds kMinPagesPerSplit pages, all on their way before the walk begins.
enum class DecodeRing { shallow, deep };
inline constexpr int kShallowRingPositions = 384;

/// Deep where a block walks far and has an SM to itself. Results do not depend on it.
constexpr DecodeRing choose_decode_ring(const DecodeShape& shape, int pages_per_split) {
  const int reach = shape.window > 0 ? shape.window : pages_per_split * kPageTokens;
  const int blocks =
      shape.num_sequences * shape.num_kv_heads * decode_splits(shape, pages_per_split);
  const bool far = std::min(reach, shape.max_context) > kShallowRingPositions;
  return far && blocks <= shape.num_sms ? DecodeRing::deep : DecodeRing::shallow;
}

struct DecodeSplit {
  int pages_per_split = 1;
  void* partials = nullptr;          // decode_partial_bytes(), aligned to 16
  std::uint32_t* arrived = nullptr;  // [sequences, kv_heads], zero before the first launch; every
                                     // launch leaves it zero
};

/// Every sequence has exactly one token: row s of q is sequence s.
void decode_attention(const Attention& attention, const DecodeSplit& split, const Launch& how);

/// What the q, k, v product left of those tokens, and the angles of all positions.
struct NewTokens {
  const float* qkv = nullptr;  // [sequences, qkv_stride]: q heads, k heads, v heads
  std::int64_t qkv_stride = 0;
  const float2* rope = nullptr;  // [positions, 32] {cos, sin}, times YaRN's factor
};

/// rope_kv and decode_attention in one launch, to the same bits: rotates q and k, stores k and v,
/// and attends; `attention.q` is not read. Only qkv may be the work of the kernel in front: earlier
/// positions, tables and contexts are read while that one still runs.
void rope_decode_attention(const Attention& attention, const NewTokens& tokens,
                           const DecodeSplit& split, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline attention
