// What do many short steps cost as kernels of their own, when one kernel could stay for all?
#pragma once
#include <cstdint>

namespace gauntlet::ch10::cooperative_persistent {

struct Params {
  const float* in;  // [rows, columns], zero outside
  float* other;     // [rows, columns], scratch: what every other step writes
  float* out;       // [rows, columns] after `steps` steps: each a mean of four neighbours
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t steps;  // even
};

}  // namespace gauntlet::ch10::cooperative_persistent
