// What do operands of eight bits with a scale per block buy over bf16, and what do the scales cost?
#pragma once
#include <cstdint>

#include "core/narrow_floats.h"

namespace gauntlet::labs::matmul_ladder_fp8 {

/// Elements along k that share a scale: of a in one row, of b in as many rows.
inline constexpr std::int64_t kScaled = 128;

struct Params {
  const F8e4m3* a;        // [m, k]
  const F8e4m3* b;        // [n, k], as the weights of a linear layer are stored
  const float* a_scales;  // [k / 128, m]
  const float* b_scales;  // [n / 128, k / 128]
  Bf16* c;                // [m, n]
  int m;
  int n;
  int k;
};

}  // namespace gauntlet::labs::matmul_ladder_fp8
