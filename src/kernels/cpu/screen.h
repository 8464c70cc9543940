// Screening: a matrix once more in bytes, and a proven bound on how far a product with the bytes is
// from the exact one. Who wants only the largest product computes exactly the few that the bounds
// leave in question.
#pragma once
#include <cstdint>
#include <span>

#include "kernels/cpu/packed.h"

namespace gauntlet::kernels::cpu {

/// Of one row w and what its bytes say, q: both rounded up; infinite where w is not finite.
struct ScreenNorms {
  float residual = 0;  // |w - q|
  float row = 0;       // the larger of |w| and |q|
};
/// Writes a row in PackedFormat::int8; `cols` is a multiple of 32.
ScreenNorms pack_row_int8(const float* row, std::int64_t cols, const RowPlace& place);

/// Where a vector goes that is rounded to two bytes per value, as Activations wants it for int8
/// weights.
struct TwoByteRow {
  std::int8_t* high;
  std::int8_t* low;
  float* steps;
  std::int32_t* offsets;
};

/// What bounds the distance between two float32 results: the exact product's chain of sums over
/// bf16 or f32 weights, and the product over bytes. For every row it is at most
/// per_residual * residual + per_norm * row + constant, evaluated and added in float32.
struct ScreenBound {
  float per_residual = 0;
  float per_norm = 0;
  float constant = 0;

  /// Whether it holds: all is finite, and no sum over a row up to this norm can overflow.
  bool holds(float largest_norm) const {
    return static_cast<double>(per_residual) * largest_norm < 0x1p120;
  }
};
/// Rounds `x`, a multiple of 32 long. Its values must be those that the exact product multiplies.
ScreenBound round_to_two_bytes(std::span<const float> x, const TwoByteRow& out);

}  // namespace gauntlet::kernels::cpu
