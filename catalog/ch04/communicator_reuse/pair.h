// What does it cost to agree on a group of ranks in every step?
#pragma once
#include <cstdint>
#include <span>

namespace gauntlet::ch04::communicator_reuse {

struct Params {
  const float* values;  // [steps, length], of this rank
  float* sums;          // [steps, length], over the ranks of its group
  std::int64_t steps;
  std::int64_t length;
  int rank;
  int num_ranks;

  std::span<const float> value(std::int64_t step) const {
    return {values + step * length, static_cast<std::size_t>(length)};
  }
  std::span<float> sum(std::int64_t step) const {
    return {sums + step * length, static_cast<std::size_t>(length)};
  }
};

/// Tensor parallelism over neighbours: ranks 0 and 1, 2 and 3, ...
inline int colour_of(int rank) { return rank / 2; }

}  // namespace gauntlet::ch04::communicator_reuse
