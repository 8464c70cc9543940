// The work that planted lies pretend to do: out = 2·in, or C = A·B.
#pragma once
#include <cstdint>

namespace gauntlet::lies {

struct Params {
  const float* in;  // [count]
  float* out;       // [count]
  std::int64_t count;
};

struct ProductParams {
  const float* a;  // [n, n]
  const float* b;  // [n, n]
  float* c;        // [n, n]
  std::int64_t n;
};

/// How often a slow side repeats what a fast one does once: often enough that no disturbance hides
/// it.
inline constexpr int kSlowPasses = 32;
/// How often a side goes over buffers that the first cache holds, in one run.
inline constexpr int kManyPasses = 256;

}  // namespace gauntlet::lies
