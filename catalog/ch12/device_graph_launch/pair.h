// What does it cost that the host asks after each iteration whether there is another?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::device_graph_launch {

constexpr std::int64_t kFewest = 24, kMost = 32;  // iterations; how many, the input says

/// Iterations of a graph: an affine round (core/affine_rounds.h), then the decision whether another
/// follows.
struct Params {
  const std::uint32_t* in;      // [words]
  const std::uint32_t* factor;  // [kMost]
  const std::int32_t* wanted;   // [1]: iterations
  std::uint32_t* out;           // [words]
  std::int64_t words;
};

}  // namespace gauntlet::ch12::device_graph_launch
