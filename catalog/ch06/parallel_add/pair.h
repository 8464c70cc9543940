// What does a machine lose when one thread does all the work?
#pragma once
#include <cstdint>

namespace gauntlet::ch06::parallel_add {

struct Params {
  const float* a;  // [count]
  const float* b;  // [count]
  float* sum;      // [count]
  std::int64_t count;
};

}  // namespace gauntlet::ch06::parallel_add
