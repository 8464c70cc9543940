// The value of one element of a fill, for the host and for device code: both must make the same
// bits.
#pragma once
#include <cstdint>

#include "core/random.h"

namespace gauntlet::lab::inline author {

constexpr float uniform_value(const Random& random, float low, float high, std::int64_t index) {
  return random.uniform(low, high, static_cast<std::uint64_t>(index));
}

/// In [first, bound).
constexpr std::int32_t integer_value(const Random& random, std::int64_t first, std::int64_t bound,
                                     std::int64_t index) {
  const auto range = static_cast<std::uint64_t>(bound - first);
  return static_cast<std::int32_t>(
      first + static_cast<std::int64_t>(random.below(range, static_cast<std::uint64_t>(index))));
}

constexpr std::int32_t permuted_value(const Random& random, std::int64_t size, std::int64_t index) {
  const auto all = static_cast<std::uint64_t>(size);
  return static_cast<std::int32_t>(random.permuted(all, static_cast<std::uint64_t>(index) % all));
}

/// Where the value at `index` stands field by field: the first half of a buffer has it in structs.
constexpr std::int64_t field_index(std::int64_t index, std::int64_t fields, std::int64_t records) {
  const std::int64_t words = fields * records;
  return index < words ? index % fields * records + index / fields : index - words;
}

/// Which of `kinds` rows comes `row`-th, whatever the seed: in no order that a tile could follow.
constexpr std::int64_t row_kind(std::int64_t row, std::int64_t kinds) {
  return static_cast<std::int64_t>(
      Random(0).below(static_cast<std::uint64_t>(kinds), static_cast<std::uint64_t>(row)));
}

/// Whose value element `index` has, where rows are repeated; its own where kinds is 0.
constexpr std::int64_t repeated_index(std::int64_t index, std::int64_t row, std::int64_t kinds) {
  return kinds == 0 ? index : row_kind(index / row, kinds) * row + index % row;
}

/// Eight bytes at a time: word `index` of a buffer.
constexpr std::uint64_t byte_word(const Random& random, std::uint64_t index) {
  return random.bits(8 * index);
}

}  // namespace gauntlet::lab::inline author
