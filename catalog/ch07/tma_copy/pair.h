// Is a copy faster when the SM's copy engine moves it than when every thread carries 16 bytes?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::tma_copy {

struct Params {
  const float* in;  // [count]
  float* out;       // [count]
  std::int64_t count;
};

}  // namespace gauntlet::ch07::tma_copy
