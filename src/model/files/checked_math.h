// Sums and products of sizes that come from files: nullopt where 64 bits do not hold them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

namespace gauntlet::model::inline files {

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// How many elements a shape has. Nullopt for a negative dimension, or when any partial product of
/// the dimensions overflows: a zero behind two huge ones must not hide them.
inline std::optional<std::int64_t> checked_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    if (size != 0 && __builtin_mul_overflow(count, size, &count)) return std::nullopt;
  }
  return empty ? 0 : count;
}

}  // namespace gauntlet::model::inline files
