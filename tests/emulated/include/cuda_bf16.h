// In place of the toolkit's: rounding of pairs.
#pragma once
#include <cuda_runtime.h>

#include "core/narrow_floats.h"

// The names are CUDA's.
// NOLINTBEGIN(bugprone-reserved-identifier)
struct __nv_bfloat162 {
  gauntlet::Bf16 x, y;
};
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {gauntlet::to_bf16(x), gauntlet::to_bf16(y)};
}
inline std::uint16_t __bfloat16_as_ushort(gauntlet::Bf16 value) { return value.bits; }
// NOLINTEND(bugprone-reserved-identifier)
