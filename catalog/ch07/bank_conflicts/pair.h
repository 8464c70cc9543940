// What happens when all lanes of a warp want the same bank of shared memory?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::bank_conflicts {

constexpr int kColumns = 32;  // as many as there are banks

struct Params {
  const float* in;  // [rows, kColumns]
  float* sums;      // [rows]
  std::int64_t rows;
};

}  // namespace gauntlet::ch07::bank_conflicts
