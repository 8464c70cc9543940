// What does attention over a long context gain when its scores are never kept?
#pragma once
#include <cstdint>

namespace gauntlet::ch10::flash_attention {

inline constexpr int kHeadDim = 64;
inline constexpr float kScale = 0.125f;  // 1 / √kHeadDim

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

}  // namespace gauntlet::ch10::flash_attention
