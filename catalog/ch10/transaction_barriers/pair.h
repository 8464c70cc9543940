// What does it gain when each tile says for itself that it has arrived?
#pragma once
#include <cstdint>

namespace gauntlet::ch10::transaction_barriers {

inline constexpr int kColumns = 1024;

struct Params {
  const float* in;  // [rows, kColumns]
  float* out;       // [rows]: the sum of each row
  std::int64_t rows;
};

}  // namespace gauntlet::ch10::transaction_barriers
