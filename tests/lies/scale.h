// The honest work on a CPU.
#pragma once
#include "tests/lies/params.h"

namespace gauntlet::lies {

inline void scale(const Params& p, int passes = 1) {
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t i = 0; i < p.count; ++i) p.out[i] = 2.0f * p.in[i];
    // Keeps the passes apart: each must store its results before the next begins.
    asm volatile("" : : : "memory");
  }
}

inline bool is_poison(float value) { return value != value; }

}  // namespace gauntlet::lies
