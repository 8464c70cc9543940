// What does attention gain when its scores go to the softmax and to the values without a way
// through memory?
#pragma once
#include <cstdint>

namespace gauntlet::ch09::fused_attention {

inline constexpr int kHeadDim = 64;
inline constexpr float kScale = 0.125f;  // 1 / √kHeadDim
/// So that the scores of 32 queries fit the shared memory of a GPU's SM; ch10:flash_attention has
/// no such limit.
inline constexpr std::int64_t kMaxKeys = 1408;

struct Params {
  const float* q;  // [heads, queries, kHeadDim]
  const float* k;  // [heads, kHeadDim, keys]: a key is a column
  const float* v;  // [heads, keys, kHeadDim]
  float* scores;   // [heads, queries, keys], scratch of sides that keep them
  float* out;      // [heads, queries, kHeadDim]: softmax(kScale q·k)·v
  std::int64_t heads;
  std::int64_t queries;
  std::int64_t keys;
};

}  // namespace gauntlet::ch09::fused_attention
