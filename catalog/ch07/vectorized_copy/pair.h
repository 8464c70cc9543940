// How much does the width of each load and store matter when nothing else about a copy changes?
#pragma once
#include <cstdint>

namespace gauntlet::ch07::vectorized_copy {

/// Words by which every pass but the first moves the data round, so that none can be left out
/// unseen; 32 bytes, so that the widest accesses stay aligned.
constexpr std::int64_t kShift = 8;

struct Params {
  const float* in;      // [count]
  float* between;       // [count], scratch; with one pass it is not used
  float* out;           // [count]: in, moved round by kShift words per pass but the first
  std::int64_t count;   // a multiple of kShift
  std::int64_t passes;  // the copy is made this many times
};

/// to[i] = from[(i + shift) % count]
struct Pass {
  const float* from;
  float* to;
  std::int64_t shift;
};

/// The first pass reads `in`, the last one writes `out`.
constexpr Pass pass_of(const Params& p, std::int64_t pass) {
  const auto written_by = [&](std::int64_t i) {
    return (p.passes - i) % 2 == 1 ? p.out : p.between;
  };
  if (pass == 0) return {p.in, written_by(0), 0};
  return {written_by(pass - 1), written_by(pass), kShift};
}

}  // namespace gauntlet::ch07::vectorized_copy
