// How many sums may a thread keep before they leave its registers?
#pragma once
#include <cstdint>

namespace gauntlet::ch08::register_pressure {

constexpr int kFilters = 288;  // more sums than a thread has registers

struct Params {
  const float* signal;   // [positions + taps - 1]
  const float* filters;  // [taps, kFilters]
  float* out;            // [kFilters, positions]
  std::int64_t positions;
  int taps;
};

}  // namespace gauntlet::ch08::register_pressure
