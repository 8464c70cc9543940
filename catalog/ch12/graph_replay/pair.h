// What is a launch of many small kernels worth handing over as one?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::graph_replay {

/// Kernels of a step, each of which needs what the one before left: an affine round each
/// (core/affine_rounds.h) over words that stay in the cache.
struct Params {
  const std::uint32_t* in;      // [words]
  const std::uint32_t* factor;  // [kernels]
  std::uint32_t* out;           // [words]
  std::int64_t words;
  std::int64_t kernels;
};

}  // namespace gauntlet::ch12::graph_replay
