// MXFP4: 32 four-bit floats share one power of two. Two byte orders exist (see Mxfp4Order).
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

namespace gauntlet::model {

inline constexpr std::int64_t kMxfp4Block = 32;        // values that share a scale
inline constexpr std::int64_t kMxfp4NibbleBytes = 16;  // of one block
inline constexpr std::int64_t kMxfp4HalvesBytes = 17;  // of one block with its scale, halves order

/// What a nibble (sign, two bits of exponent, one of mantissa) stands for.
inline constexpr std::array<float, 16> kMxfp4Values = {0,    .5f,  1,  1.5f,  2,  3,  4,  6,
                                                       -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};

/// 2^(byte - 127), exactly; 255 is not a number.
inline float e8m0_value(std::uint8_t byte) {
  if (byte == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(byte == 0 ? 0x00400000u : static_cast<std::uint32_t>(byte) << 23);
}

/// A row of `count` values (a multiple of 32) in neighbours order.
void decode_mxfp4(const std::uint8_t* nibbles, const std::uint8_t* scales, std::int64_t count,
                  float* out);

/// The sixteen bytes of one block from one order into the other.
void halves_to_neighbours(const std::uint8_t* halves, std::uint8_t* neighbours);
void neighbours_to_halves(const std::uint8_t* neighbours, std::uint8_t* halves);

}  // namespace gauntlet::model
