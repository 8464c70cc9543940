// What does it save to add the bias and rectify while a product's sums are still in registers?
#pragma once
#include <cstdint>

namespace gauntlet::ch09::epilogue_fusion {

struct Params {
  const float* x;     // [m, k]
  const float* w;     // [n, k]
  const float* bias;  // [n]
  float* y;           // [m, n]: max(x·wᵀ + bias, 0)
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

}  // namespace gauntlet::ch09::epilogue_fusion
