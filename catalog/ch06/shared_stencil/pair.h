// Is it worth staging the neighbours of a wide stencil in shared memory when L1 is there already?
#pragma once
#include <cstdint>

namespace gauntlet::ch06::shared_stencil {

constexpr int kRadius = 16;
constexpr int kTaps = 2 * kRadius + 1;
constexpr int kRow = 1024;  // the number of outputs is a multiple of it

/// A triangular filter; the weights add up to one.
constexpr float weight(int tap) {
  const int distance = tap < kRadius ? kRadius - tap : tap - kRadius;
  return static_cast<float>(kRadius + 1 - distance) / ((kRadius + 1) * (kRadius + 1));
}

/// out[i] = Σ weight(tap) · in[i + tap]
struct Params {
  const float* in;  // [count + 2 * kRadius]
  float* out;       // [count]
  std::int64_t count;
};

}  // namespace gauntlet::ch06::shared_stencil
