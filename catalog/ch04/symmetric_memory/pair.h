// What does a small sum over ranks cost without messages?
#pragma once
#include <cstdint>
#include <span>

namespace gauntlet::ch04::symmetric_memory {

struct Params {
  const float* values;  // [steps, length], of this rank
  float* sums;          // [steps, length], over all ranks
  std::int64_t steps;
  std::int64_t length;
  int num_ranks;

  std::span<const float> value(std::int64_t step) const {
    return {values + step * length, static_cast<std::size_t>(length)};
  }
  std::span<float> sum(std::int64_t step) const {
    return {sums + step * length, static_cast<std::size_t>(length)};
  }
};

}  // namespace gauntlet::ch04::symmetric_memory
