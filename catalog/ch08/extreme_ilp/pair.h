// Can a quarter of the warps move more bytes, if each has eight loads in flight?
#pragma once
#include <cstdint>

namespace gauntlet::ch08::extreme_ilp {

constexpr float kScale = 1.5f;

struct Params {
  const float* in;  // [count]
  float* out;       // [count]
  std::int64_t count;
};

}  // namespace gauntlet::ch08::extreme_ilp
