// How much does the width of each load and store matter when nothing else about a copy changes?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::vectorized_copy {

struct Params {
  const float* in;  // [count]
  float* out;       // [count]
  std::int64_t count;
  std::int64_t passes;  // the copy is made this many times
};

}  // namespace gauntlet::ch07::vectorized_copy
