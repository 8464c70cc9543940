// Can a transpose stay free of bank conflicts without paying for padding?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::transpose_swizzled {

struct Params {
  const float* in;  // [rows, columns]
  float* out;       // [columns, rows]
  std::int64_t rows;
  std::int64_t columns;
};

}  // namespace gauntlet::ch07::transpose_swizzled
