// Is it cheaper to skip work for half of the elements, or to do it for all and select?
#pragma once
#include <cstdint>

namespace gauntlet::ch08::predication {

constexpr float kSoftening2 = 1e-3f;

struct Params {
  const float* targets;  // [3, targets]: x, y, z in the unit cube
  const float* sources;  // [sources, 4]: x, y, z and weight
  float* out;            // [targets, 3]: the field at each target
  std::int64_t num_targets;
  std::int64_t num_sources;
  float cutoff2;  // pairs farther apart than the cutoff do not interact
};

}  // namespace gauntlet::ch08::predication
