// How many warps does an SM need to cover the latency of loads that depend on loads?
#pragma once
#include <cstdint>

namespace gauntlet::ch08::occupancy_for_latency {

struct Params {
  const std::int32_t* index;  // [count], in [0, entries)
  const float* table;         // [entries]
  float* out;                 // [count]
  std::int64_t count;
  std::int64_t entries;
};

}  // namespace gauntlet::ch08::occupancy_for_latency
