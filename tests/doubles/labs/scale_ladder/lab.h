// Does the lab hold a ladder: rungs in the order of their numbers, and a library beside them?
#pragma once
#include <cstdint>

namespace gauntlet::labs::scale_ladder {

struct Params {
  const float* in;  // [count]
  float* out;       // [count]
  std::int64_t count;
};

/// Doubles the array so many times over; every pass but the last is for nothing.
inline void scale(const Params& p, int passes) {
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t i = 0; i < p.count; ++i) p.out[i] = 2 * p.in[i];
    asm volatile("" : : "r"(p.out) : "memory");  // a pass that nobody needs is still one
  }
}

}  // namespace gauntlet::labs::scale_ladder
