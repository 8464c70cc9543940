// What does it cost to normalise rows in three passes over memory instead of one?
#pragma once
#include <cstdint>

namespace gauntlet::ch09::fused_l2norm {

/// What the registers of a block, and the first-level cache of a core, hold.
inline constexpr std::int64_t kMaxColumns = 4096;

struct Params {
  const float* in;  // [rows, columns]
  float* squares;   // [rows, columns], scratch of sides that keep them
  float* scales;    // [rows], likewise: one over the length of each row
  float* out;       // [rows, columns]: each row has length 1
  std::int64_t rows;
  std::int64_t columns;
};

}  // namespace gauntlet::ch09::fused_l2norm
