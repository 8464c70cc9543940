// An operation at a time over all rows: squares, then their sums, then the division.
#include <cmath>

#include "catalog/ch09/fused_l2norm/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::fused_l2norm::cpu {
namespace {

// Sums side by side, in vectors, and enough of them to cover the latency of an addition.
constexpr int kLanes = 32;

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const float* __restrict__ in = p.in + row * p.columns;
      float* __restrict__ squares = p.squares + row * p.columns;
      for (std::int64_t i = 0; i < p.columns; ++i) squares[i] = in[i] * in[i];
    }
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const float* __restrict__ squares = p.squares + row * p.columns;
      float sums[kLanes] = {};
      for (std::int64_t i = 0; i < p.columns; i += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) sums[lane] += squares[i + lane];
      }
      float sum = 0;
      for (float lane : sums) sum += lane;
      p.scales[row] = 1 / std::sqrt(sum);
    }
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const float* __restrict__ in = p.in + row * p.columns;
      float* __restrict__ out = p.out + row * p.columns;
      const float scale = p.scales[row];
      for (std::int64_t i = 0; i < p.columns; ++i) out[i] = in[i] * scale;
    }
  };
}

}  // namespace gauntlet::ch09::fused_l2norm::cpu
