// What does it save when the blocks of a row add up through each other's shared memory instead of
// global memory?
#pragma once
#include <cstdint>

namespace gauntlet::ch10::dsmem_reduction {

inline constexpr int kBlocksPerRow = 8;
inline constexpr int kThreads = 256;
inline constexpr int kVectors = 8;  // of four words, per thread
/// Of a row: what the registers of its blocks hold.
inline constexpr std::int64_t kColumns = std::int64_t{kBlocksPerRow} * kThreads * kVectors * 4;

struct Params {
  const float* in;  // [rows, kColumns]
  float* partial;   // [rows, kBlocksPerRow], scratch of sides that add up in global memory
  float* out;       // [rows, kColumns]: each row has length 1
  std::int64_t rows;
};

}  // namespace gauntlet::ch10::dsmem_reduction
