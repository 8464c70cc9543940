// Does it matter whether a block is a whole number of warps?
#pragma once
#include <cstdint>

namespace gauntlet::ch06::block_sizing {

/// out = 1 + x + x² + … (`terms` terms), by Horner's rule: arithmetic enough that idle lanes show.
struct Params {
  const float* x;  // [count], |x| ≤ 1/2
  float* out;      // [count]
  std::int64_t count;
  int terms;
};

}  // namespace gauntlet::ch06::block_sizing
