// Does the lab hold a pair of several ranks, as threads and as processes?
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/ranks/group.h"

namespace gauntlet::doubles::rank_sum {

struct Params {
  const std::int32_t* values;  // [count], of this rank
  std::int32_t* sums;          // [count], over all ranks
  std::int64_t count;
  int num_ranks;
};

/// Adds up all ranks' values [begin, begin + count) with one message.
inline void sum_part(const Params& p, gauntlet::ranks::Group& group, std::int64_t begin,
                     std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  std::vector<std::int32_t> all(size * static_cast<std::size_t>(group.size()));
  const auto gathered = group.all_gather(std::as_bytes(std::span(p.values + begin, size)),
                                         std::as_writable_bytes(std::span(all)));
  check(static_cast<bool>(gathered), "the ranks lost each other");
  for (std::size_t i = 0; i < size; ++i) {
    std::int32_t sum = 0;
    for (std::size_t at = i; at < all.size(); at += size) sum += all[at];
    p.sums[static_cast<std::size_t>(begin) + i] = sum;
  }
}

}  // namespace gauntlet::doubles::rank_sum
