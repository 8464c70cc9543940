// What does a last wave of few blocks cost, and what is left when it is cut into pieces?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::tail_packing {

constexpr int kThreads = 1024;
constexpr int kWordsPerThread = 32;  // in registers, so that one block fits an SM
constexpr std::int64_t kTileWords = std::int64_t{kThreads} * kWordsPerThread;
constexpr int kRounds = 128;

/// Tiles of a block each: every word takes part in kRounds affine rounds (core/affine_rounds.h).
struct Params {
  const std::uint32_t* in;      // [tiles, kTileWords]
  const std::uint32_t* factor;  // [kRounds]
  std::uint32_t* out;           // [tiles, kTileWords]
  std::int64_t tiles;
};

}  // namespace gauntlet::ch12::tail_packing
