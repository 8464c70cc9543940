// Which algorithm sums messages of which size fastest over these links?
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "core/ranks/link.h"

namespace gauntlet::ch04::collective_tuning {

/// Values of the messages of a step: 4 to 64 KiB, as activations of a few tokens have.
constexpr std::array<std::int64_t, 4> kLengths = {1 << 10, 1 << 12, 1 << 13, 1 << 14};

constexpr std::int64_t total_length() {
  std::int64_t total = 0;
  for (const std::int64_t length : kLengths) total += length;
  return total;
}

struct Params {
  const float* values;  // [total_length()], of this rank: one message behind the other
  float* sums;          // [total_length()], over all ranks
  gauntlet::ranks::Fabric fabric;
  int num_ranks;
};

/// Calls use(message number, sums of it) for every message, which hold this rank's values.
template <class Use>
void for_messages(const Params& p, const Use& use) {
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < kLengths.size(); begin += kLengths[i++]) {
    const std::span sum(p.sums + begin, static_cast<std::size_t>(kLengths[i]));
    for (std::size_t k = 0; k < sum.size(); ++k)
      sum[k] = p.values[begin + static_cast<std::int64_t>(k)];
    use(i, sum);
  }
}

}  // namespace gauntlet::ch04::collective_tuning
