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

/// A generator of full period, which ends with the chance that makes the expectation.
struct Sequence {
  std::uint32_t state = 0;
  std::uint32_t steps = 0;
  std::uint32_t ends_below = 0;
};

constexpr Sequence begin_sequence(const Params& p, std::int64_t item) {
  const std::int64_t expected = 1 + (p.longest - 1) * (p.items - 1 - item) / p.items;
  return {.state = p.start[item],
          .steps = 0,
          .ends_below = static_cast<std::uint32_t>(0xFFFFFFFFu / expected)};
}

/// A step; false once the sequence has ended.
constexpr bool advance(Sequence& sequence) {
  sequence.state = sequence.state * 1664525u + 1013904223u;
  ++sequence.steps;
  return sequence.state > sequence.ends_below;
}

constexpr std::uint32_t result_of(const Sequence& sequence) {
  return sequence.state + sequence.steps;
}

constexpr std::uint32_t continue_sequence(const Params& p, std::int64_t item) {
  Sequence sequence = begin_sequence(p, item);
  while (advance(sequence)) {
  }
  return result_of(sequence);
}

}  // namespace gauntlet::ch12::work_queue
