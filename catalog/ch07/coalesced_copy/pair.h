// Does it matter which thread (or which loop) touches which word of a copy?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::coalesced_copy {

struct Params {
  const float* in;  // [rows, columns]
  float* out;       // [rows, columns]
  std::int64_t rows;
  std::int64_t columns;
};

}  // namespace gauntlet::ch07::coalesced_copy
