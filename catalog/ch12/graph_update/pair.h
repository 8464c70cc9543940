// What does a graph cost whose parameters change with every step?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::graph_update {

/// Steps of a graph of several kernels. The first takes up the step's own words, at an address of
/// their own, and adds those of the step before; the others do an affine round each
/// (core/affine_rounds.h).
struct Params {
  const std::uint32_t* in;      // [steps, words]
  const std::uint32_t* factor;  // [kernels], of which the last is not used
  std::uint32_t* out;           // [words]
  std::int64_t words;
  std::int64_t kernels;  // of a graph
  std::int64_t steps;
};

}  // namespace gauntlet::ch12::graph_update
