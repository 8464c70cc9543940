// The work that all planted lies pretend to do: out = 2·in.
#pragma once
#include <cstdint>

namespace gauntlet::lies {

struct Params {
  const float* in;  // [count]
  float* out;       // [count]
  std::int64_t count;
};

/// How often a slow side repeats what a fast one does once.
inline constexpr int kSlowPasses = 8;

}  // namespace gauntlet::lies
