// How the elements of each weight type lie in memory.
#pragma once
#include <bit>
#include <cstdint>

#include "model/mxfp4.h"
#include "model/weights.h"

namespace gauntlet::model {

inline constexpr std::int64_t kQ8Block = 32;       // values that share a scale
inline constexpr std::int64_t kQ8BlockBytes = 34;  // a float16 scale and 32 signed bytes

constexpr bool is_block_type(WeightType type) {
  return type == WeightType::q8_0 || type == WeightType::mxfp4;
}

constexpr std::int64_t block_values(WeightType type) {
  return type == WeightType::q8_0 ? kQ8Block : type == WeightType::mxfp4 ? kMxfp4Block : 1;
}

/// Of types that are not block types.
constexpr std::int64_t element_bytes(WeightType type) { return type == WeightType::f32 ? 4 : 2; }

/// Of a contiguous row; for mxfp4 in halves order, or nibbles and scales together.
constexpr std::int64_t stored_row_bytes(WeightType type, std::int64_t cols) {
  switch (type) {
    case WeightType::q8_0:
      return cols / kQ8Block * kQ8BlockBytes;
    case WeightType::mxfp4:
      return cols / kMxfp4Block * kMxfp4HalvesBytes;
    default:
      return cols * element_bytes(type);
  }
}

inline float bf16_value(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline float f16_value(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) {  // infinite, or not a number
    return std::bit_cast<float>(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  }
  // The exponent's bias is 15 instead of 127; multiplying also handles the subnormal ones.
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

}  // namespace gauntlet::model
