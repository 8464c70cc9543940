// What does it cost to split uneven work into equal numbers of items?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::work_queue {

/// Sequences that are continued until they draw their end. The batch is in the order in which a
/// scheduler leaves it, those expected to be longest in front; how long one gets nobody knows.
struct Params {
  const std::uint32_t* start;  // [items]
  std::uint32_t* out;          // [items]: the last state, plus the number of steps
  std::int64_t items;
  std::int64_t longest;  // expected steps of the first; the expectation falls to the last's 1
};

/// Of one sequence: a generator of full period, which ends with the chance that makes the
/// expectation.
constexpr std::uint32_t continue_sequence(const Params& p, std::int64_t item) {
  const std::int64_t expected = 1 + (p.longest - 1) * (p.items - 1 - item) / p.items;
  const auto ends_below = static_cast<std::uint32_t>(0xFFFFFFFFu / expected);
  std::uint32_t state = p.start[item], steps = 0;
  do {
    state = state * 1664525u + 1013904223u;
    ++steps;
  } while (state > ends_below);
  return state + steps;
}

}  // namespace gauntlet::ch12::work_queue
