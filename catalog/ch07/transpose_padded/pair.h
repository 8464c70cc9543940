// A transpose must be strided on one side. Does it have to be strided in DRAM?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::transpose_padded {

struct Params {
  const float* in;  // [rows, columns]
  float* out;       // [columns, rows]
  std::int64_t rows;
  std::int64_t columns;
};

}  // namespace gauntlet::ch07::transpose_padded
