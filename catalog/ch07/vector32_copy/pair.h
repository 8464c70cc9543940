// Do 32-byte accesses, which Blackwell adds, move more than 16-byte ones?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::vector32_copy {

struct Params {
  const float* in;  // [count]
  float* out;       // [count]
  std::int64_t count;
};

}  // namespace gauntlet::ch07::vector32_copy
