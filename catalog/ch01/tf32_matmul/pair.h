// What does one switch, from fp32 to tf32 tensor cores, buy and cost in a matrix product?
#pragma once
#include <cstdint>

namespace gauntlet::ch01::tf32_matmul {

struct Params {
  const float* a;  // [m, k]
  const float* b;  // [k, n]
  float* c;        // [m, n]
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

}  // namespace gauntlet::ch01::tf32_matmul
