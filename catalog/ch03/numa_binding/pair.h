// How much slower is memory of another node?
#pragma once
#include <cstdint>

namespace gauntlet::ch03::numa_binding {

constexpr std::int64_t kRowWords = 512;

struct Params {
  const std::uint64_t* remote;  // [rows, kRowWords], on the farthest node
  const std::uint64_t* local;   // [rows, kRowWords], the same words on the thread's own node
  std::uint64_t* out;           // [rows]: the sum of the row's words
  std::int64_t rows;
};

/// The same loop for both sides: they differ by the node of what they read.
inline void sum_rows(const Params& p, const std::uint64_t* words) {
  for (std::int64_t row = 0; row < p.rows; ++row) {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < kRowWords; ++i) sum += words[row * kRowWords + i];
    p.out[row] = sum;
  }
}

}  // namespace gauntlet::ch03::numa_binding
