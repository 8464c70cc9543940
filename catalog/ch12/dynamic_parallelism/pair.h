// What does it cost that the host asks how much work there is before it launches it?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::dynamic_parallelism {

constexpr std::int64_t kRegionWords = 4096;

/// Refinement, level by level. A region's first word says how many of its words a level refines, by
/// an affine round (core/affine_rounds.h), and so how many the next one does.
struct Params {
  const std::uint32_t* in;      // [regions, kRegionWords]
  const std::uint32_t* factor;  // [levels]
  std::uint32_t* out;           // [regions, kRegionWords]
  std::int64_t regions;         // 1024 at most: a thread of a block each
  std::int64_t levels;
};

/// One or more, and kRegionWords at most.
constexpr std::uint32_t words_to_refine(const std::uint32_t* region) {
  return 1 + (region[0] >> 20) % static_cast<std::uint32_t>(kRegionWords);
}

}  // namespace gauntlet::ch12::dynamic_parallelism
