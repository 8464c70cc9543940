// What is a sum worth that first adds up what is near?
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ranks/link.h"
#include "core/ranks/must.h"

namespace gauntlet::ch04::topology_allreduce {

constexpr int kRanksPerHost = 2;

struct Params {
  const float* values;  // [count], of this rank
  float* sums;          // [count], over all ranks
  std::int64_t count;
  gauntlet::ranks::Fabric fabric;
  int num_ranks;
};

/// All ranks' numbers become their sum, by messages to the next rank alone: parts travel round the
/// ring and grow, and then their sums travel round. `room` holds a part.
inline void ring_sum(gauntlet::ranks::Group& group, std::span<float> numbers,
                     std::vector<float>& room) {
  const int ranks = group.size();
  const int next = (group.rank() + 1) % ranks, before = (group.rank() + ranks - 1) % ranks;
  const auto part = [&](int number) {
    const auto index = static_cast<std::size_t>((number + 2 * ranks) % ranks);
    const auto count = static_cast<std::size_t>(ranks);
    const std::size_t begin = numbers.size() * index / count;
    return numbers.subspan(begin, numbers.size() * (index + 1) / count - begin);
  };
  for (int step = 0; step + 1 < ranks; ++step) {
    gauntlet::ranks::must(group.send(next, std::as_bytes(part(group.rank() - step))));
    const auto grows = part(group.rank() - step - 1);
    room.resize(grows.size());
    gauntlet::ranks::must(group.receive(before, std::as_writable_bytes(std::span(room))));
    for (std::size_t i = 0; i < grows.size(); ++i) grows[i] += room[i];
  }
  for (int step = 0; step + 1 < ranks; ++step) {
    gauntlet::ranks::must(group.send(next, std::as_bytes(part(group.rank() + 1 - step))));
    gauntlet::ranks::must(group.receive(before, std::as_writable_bytes(part(group.rank() - step))));
  }
}

}  // namespace gauntlet::ch04::topology_allreduce
