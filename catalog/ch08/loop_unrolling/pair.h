// How fast can a sum be when every addition waits for the one before?
#pragma once
#include <cstdint>

namespace gauntlet::ch08::loop_unrolling {

struct Params {
  const float* in;  // [rows, columns]
  float* out;       // [columns]: the sum of each column, such as the gradient of a bias
  std::int64_t rows;
  std::int64_t columns;
};

}  // namespace gauntlet::ch08::loop_unrolling
