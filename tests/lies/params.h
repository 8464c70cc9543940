// The work that all planted lies pretend to do: out = 2·in.
#pragma once
#include <cstdint>

namespace gauntlet::lies {

struct Params {
  const float* in;  // [count]
  float* out;       // [count]
  std::int64_t count;
};

/// How often a slow side repeats what a fast one does once: often enough that no disturbance hides
/// it.
inline constexpr int kSlowPasses = 32;

}  // namespace gauntlet::lies
