// Ways to add up numbers over ranks, made of messages.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "core/ranks/group.h"
#include "core/ranks/must.h"

namespace gauntlet::ch04::collective_tuning {

using gauntlet::ranks::Group;
using gauntlet::ranks::must;

enum class Algorithm { at_once, scatter_gather, ring, doubling, tree };
inline constexpr Algorithm kAlgorithms[] = {Algorithm::at_once, Algorithm::scatter_gather,
                                            Algorithm::ring, Algorithm::doubling, Algorithm::tree};

inline void send(Group& group, int to, std::span<const float> numbers) {
  must(group.send(to, std::as_bytes(numbers)));
}
inline void receive(Group& group, int from, std::span<float> numbers) {
  must(group.receive(from, std::as_writable_bytes(numbers)));
}
inline void add(std::span<float> sum, std::span<const float> terms) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += terms[i];
}

/// Everyone's numbers to everyone: one latency, ranks - 1 times the bytes.
inline void sum_at_once(Group& group, std::span<float> numbers) {
  std::vector<float> all(numbers.size() * static_cast<std::size_t>(group.size()));
  must(group.all_gather(std::as_bytes(numbers), std::as_writable_bytes(std::span(all))));
  std::ranges::fill(numbers, 0.0f);
  for (std::size_t at = 0; at < all.size(); at += numbers.size()) {
    add(numbers, std::span(all).subspan(at, numbers.size()));
  }
}

/// Where a rank's part of the numbers begins.
inline std::size_t begin_of(std::size_t count, int part, int ranks) {
  return count * static_cast<std::size_t>(part) / static_cast<std::size_t>(ranks);
}

/// A part of the sum for each, and all parts for all: two latencies, less than twice the bytes.
inline void sum_by_scatter_gather(Group& group, std::span<float> numbers) {
  std::vector<std::size_t> counts, sizes;
  for (int rank = 0; rank < group.size(); ++rank) {
    counts.push_back(begin_of(numbers.size(), rank + 1, group.size()) -
                     begin_of(numbers.size(), rank, group.size()));
    sizes.push_back(counts.back() * sizeof(float));
  }
  std::vector<float> own(counts[static_cast<std::size_t>(group.rank())]);
  must(group.reduce_scatter(numbers, counts, own));
  must(group.all_gather(std::as_bytes(std::span(own)), sizes, std::as_writable_bytes(numbers)));
}

/// The same by messages to the next rank alone: 2 (ranks - 1) latencies.
inline void sum_by_ring(Group& group, std::span<float> numbers) {
  const int ranks = group.size(), rank = group.rank();
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  const auto part = [&](int number) {
    number = (number + 2 * ranks) % ranks;
    const std::size_t begin = begin_of(numbers.size(), number, ranks);
    return numbers.subspan(begin, begin_of(numbers.size(), number + 1, ranks) - begin);
  };
  std::vector<float> terms;
  for (int step = 0; step + 1 < ranks; ++step) {
    send(group, next, part(rank - step));
    terms.resize(part(rank - step - 1).size());
    receive(group, before, terms);
    add(part(rank - step - 1), terms);
  }
  for (int step = 0; step + 1 < ranks; ++step) {
    send(group, next, part(rank + 1 - step));
    receive(group, before, part(rank - step));
  }
}

/// All numbers with a partner at twice the distance each time: log2(ranks) latencies, and as often
/// the bytes. Only powers of two have a partner for everyone.
inline void sum_by_doubling(Group& group, std::span<float> numbers) {
  std::vector<float> terms(numbers.size());
  for (int distance = 1; distance < group.size(); distance *= 2) {
    const int partner = group.rank() ^ distance;
    send(group, partner, numbers);
    receive(group, partner, terms);
    add(numbers, terms);
  }
}

/// Towards rank 0 and back along a binomial tree: 2 log2(ranks) latencies, the bytes as often, and
/// the fewest messages.
inline void sum_by_tree(Group& group, std::span<float> numbers) {
  const int rank = group.rank();
  std::vector<float> terms(numbers.size());
  int reach = 1;  // ends as the distance to this rank's parent
  for (; reach < group.size() && (rank & reach) == 0; reach *= 2) {
    if (rank + reach >= group.size()) continue;
    receive(group, rank + reach, terms);
    add(numbers, terms);
  }
  if (rank != 0) {
    send(group, rank - reach, numbers);
    receive(group, rank - reach, numbers);
  }
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (rank + distance < group.size()) send(group, rank + distance, numbers);
  }
}

inline bool can(Algorithm algorithm, int ranks) {
  return algorithm != Algorithm::doubling || std::has_single_bit(static_cast<unsigned>(ranks));
}

inline void sum_by(Algorithm algorithm, Group& group, std::span<float> numbers) {
  switch (algorithm) {
    case Algorithm::at_once:
      return sum_at_once(group, numbers);
    case Algorithm::scatter_gather:
      return sum_by_scatter_gather(group, numbers);
    case Algorithm::ring:
      return sum_by_ring(group, numbers);
    case Algorithm::doubling:
      return sum_by_doubling(group, numbers);
    case Algorithm::tree:
      return sum_by_tree(group, numbers);
  }
}

}  // namespace gauntlet::ch04::collective_tuning
