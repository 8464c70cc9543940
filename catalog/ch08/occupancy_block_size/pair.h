// What does a block of a single warp cost when an SM holds at most 32 blocks?
#pragma once
#include <cstdint>

namespace gauntlet::ch08::occupancy_block_size {

constexpr float kScale = 1.5f;

struct Params {
  const float* x;  // [count]
  const float* y;  // [count]
  float* out;      // [count]
  std::int64_t count;
};

}  // namespace gauntlet::ch08::occupancy_block_size
