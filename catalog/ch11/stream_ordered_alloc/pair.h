// What does it cost to take working memory for every step?
#pragma once
#include <cstddef>
#include <cstdint>

namespace gauntlet::ch11::stream_ordered_alloc {

/// Steps that need working memory while they are at it, each of another size: a step takes three
/// times its words into it, and out again mirrored, plus the number of the step.
struct Params {
  const std::uint32_t* in;  // [words]
  std::uint32_t* out;       // [words]
  std::int64_t words;
  std::int64_t steps;
};

/// A step's working memory: that of its words, and something that no two steps have alike.
inline std::size_t working_bytes(const Params& p, std::int64_t step) {
  return static_cast<std::size_t>(p.words + 1024 * step) * sizeof(std::uint32_t);
}

}  // namespace gauntlet::ch11::stream_ordered_alloc
