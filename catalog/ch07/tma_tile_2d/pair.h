// What does a tensor map save a kernel that works on two-dimensional tiles with a halo?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::tma_tile_2d {

struct Params {
  const float* in;  // [rows, columns], zero outside
  float* out;       // [rows, columns]: 4 in - its four neighbours
  std::int64_t rows;
  std::int64_t columns;
};

}  // namespace gauntlet::ch07::tma_tile_2d
