// What is gained when one half of a batch communicates while the other computes?
#pragma once
#include <cstdint>

namespace gauntlet::ch11::dual_pipeline {

constexpr int kRounds = 2048;
constexpr std::int64_t kHalves = 2;
constexpr std::int64_t kBlockWords = 1024;  // 256 threads with four words each

/// A model whose layers exchange what they computed: each word takes part in kRounds affine rounds
/// (core/affine_rounds.h), then each half-batch goes through the host's memory, where a peer would
/// take it over, and comes back with its front and back exchanged.
struct Params {
  const std::uint32_t* in;      // [kHalves, words]
  const std::uint32_t* factor;  // [kRounds]
  std::uint32_t* hidden;        // [kHalves, words], on the device
  std::uint32_t* wire;          // [kHalves, words], page-locked memory of the host
  std::uint32_t* out;           // [kHalves, words]
  std::int64_t words;           // of a half, a multiple of 2 * kBlockWords
  std::int64_t layers;
};

}  // namespace gauntlet::ch11::dual_pipeline
