// What does a warp pay when its lanes take different branches?
#pragma once
#include <cstdint>

namespace gauntlet::ch06::warp_divergence {

constexpr int kKinds = 4;
constexpr int kGroup = 8;                 // neighbours of one kind: one 32-byte sector
constexpr int kPeriod = kKinds * kGroup;  // the kinds repeat after it
constexpr int kTile = kKinds * kPeriod;   // the smallest stretch with a warp's worth of each kind

/// out[i] = one of four functions of x[i]; which one is decided by the position: sinh, log(1 + x),
/// asinh and erfc in turn, eight elements each.
struct Params {
  const float* x;  // [count]
  float* out;      // [count]
  std::int64_t count;
};

}  // namespace gauntlet::ch06::warp_divergence
