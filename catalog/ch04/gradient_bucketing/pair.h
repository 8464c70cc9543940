// How many gradients go into one collective?
#pragma once
#include <cstdint>
#include <span>

namespace gauntlet::ch04::gradient_bucketing {

struct Params {
  const float* gradients;  // [tensors, length], of this rank
  float* sums;             // [tensors, length], over all ranks
  std::int64_t tensors;
  std::int64_t length;
  std::int64_t in_bucket;  // tensors
  int num_ranks;

  std::span<const float> gradient(std::int64_t tensor) const {
    return {gradients + tensor * length, static_cast<std::size_t>(length)};
  }
  std::span<float> sum(std::int64_t tensor) const {
    return {sums + tensor * length, static_cast<std::size_t>(length)};
  }
};

}  // namespace gauntlet::ch04::gradient_bucketing
