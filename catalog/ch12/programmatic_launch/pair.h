// What is gained when a kernel reads what it needs of its own while the one in front ends?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::programmatic_launch {

constexpr std::int64_t kBlockWords = 1024;  // 256 threads with four words each

/// Layers, a kernel each: an affine round (core/affine_rounds.h) in which every word has a weight
/// of its own, which does not depend on the layer before.
struct Params {
  const std::uint32_t* in;       // [words]
  const std::uint32_t* weights;  // [layers, words]
  std::uint32_t* out;            // [words]
  std::int64_t words;            // a multiple of kBlockWords
  std::int64_t layers;
};

}  // namespace gauntlet::ch12::programmatic_launch
