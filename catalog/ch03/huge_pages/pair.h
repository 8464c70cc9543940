// What does a translation cost, when memory is looked at here and there?
#pragma once
#include <cstdint>

namespace gauntlet::ch03::huge_pages {

constexpr int kWords = 8;  // per row: one cache line

struct Params {
  const std::uint64_t* small;  // [rows, kWords], in pages of 4 KiB
  const std::uint64_t* huge;   // [rows, kWords], the same words in pages of 2 MiB
  const std::int32_t* index;   // [lookups]: rows, in random order without repeats
  std::uint64_t* out;          // [lookups]: the sum of the row's words
  std::int64_t rows;
  std::int64_t lookups;
};

/// The same loop for both sides: they differ by the table.
inline void look_up(const Params& p, const std::uint64_t* table) {
  for (std::int64_t i = 0; i < p.lookups; ++i) {
    const std::uint64_t* row = table + std::int64_t{p.index[i]} * kWords;
    std::uint64_t sum = 0;
    for (int word = 0; word < kWords; ++word) sum += row[word];
    p.out[i] = sum;
  }
}

}  // namespace gauntlet::ch03::huge_pages
