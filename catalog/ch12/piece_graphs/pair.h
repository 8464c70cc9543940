// What does a step cost of which only a part changes, captured whole again or kept in pieces?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::piece_graphs {

constexpr std::int64_t kRegionKernels = 4;

/// Steps over layers of a region that is always the same and a kernel whose size is the step's own,
/// as attention has. All are affine rounds (core/affine_rounds.h), the region's over all words.
struct Params {
  const std::uint32_t* in;      // [words]
  const std::uint32_t* factor;  // [layers, kRegionKernels + 1], the last of the kernel that changes
  std::uint32_t* out;           // [words]
  std::int64_t words;
  std::int64_t layers;
  std::int64_t steps;
};

/// The words that the changing kernel of a step is for; no two steps have as many.
constexpr std::int64_t changing_words(const Params& p, std::int64_t step) {
  return p.words * (step + 1) / p.steps;
}

}  // namespace gauntlet::ch12::piece_graphs
