// What do the passes over memory between elementwise operations cost, when one could do them all?
#pragma once
#include <cstdint>

namespace gauntlet::ch09::fused_elementwise {

struct Params {
  const float* in;        // [rows, columns]
  const float* residual;  // [rows, columns]
  const float* scale;     // [columns]
  const float* bias;      // [columns]
  float* out;             // [rows, columns]: residual + max(in · scale + bias, 0)
  std::int64_t rows;
  std::int64_t columns;
};

}  // namespace gauntlet::ch09::fused_elementwise
