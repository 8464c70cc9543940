// What does it cost to start a block for every warp?
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
