// What is gained when copies in both directions and kernels go on at the same time?
#pragma once
#include <cstdint>

namespace gauntlet::ch11::copy_compute_overlap {

constexpr std::int64_t kChunks = 16;
constexpr int kRounds = 1024;
constexpr std::int64_t kBlockWords = 1024;  // 256 threads with four words each

/// Data that lie in the host's memory, are worked on by the GPU and go back: each word takes part
/// in kRounds affine rounds (core/affine_rounds.h).
struct Params {
  const std::uint32_t* in;      // [words], page-locked memory of the host
  const std::uint32_t* factor;  // [kRounds], on the device
  std::uint32_t* device;        // [words]
  std::uint32_t* out;           // [words], page-locked memory of the host
  std::int64_t words;           // a multiple of kChunks * kBlockWords
};

}  // namespace gauntlet::ch11::copy_compute_overlap
