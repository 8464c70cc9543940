// What does it save when the lanes of a warp add up through registers instead of shared memory?
#pragma once
#include <cstdint>

namespace gauntlet::ch09::warp_shuffle_reduction {

struct Params {
  const float* in;  // [rows, columns]
  float* out;       // [rows]: the sum of each row
  std::int64_t rows;
  std::int64_t columns;
};

}  // namespace gauntlet::ch09::warp_shuffle_reduction
