// Floats of sixteen and eight bits as they lie in memory, for host and device code.
#pragma once
#include <bit>
#include <cstdint>

#include "core/dtype.h"

namespace gauntlet {

struct Bf16 {
  std::uint16_t bits;
  friend constexpr bool operator==(Bf16, Bf16) = default;
};

struct F8e4m3 {
  std::uint8_t bits;
  friend constexpr bool operator==(F8e4m3, F8e4m3) = default;
};

template <>
constexpr DType dtype_of<Bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<F8e4m3>() {
  return DType::f8e4m3;
}

/// The nearest bf16 of a finite number; of two, the even one.
constexpr Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// The nearest e4m3 of a finite number; of two, the even one. What is too large becomes 448.
constexpr F8e4m3 to_f8e4m3(float value) {
  constexpr std::uint32_t kLargest = 0x43E00000;   // 448
  constexpr std::uint32_t kNormal = 0x3C800000;    // 2^-6
  constexpr std::uint32_t kBias = (127 - 7) << 3;  // of the exponents, above three bits
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 24 & 0x80, size = bits & 0x7FFFFFFF;
  std::uint32_t rounded = 0x7E;
  if (size < kNormal) {
    // In units of 2^-9; what is added makes the sum's last bit one of them.
    rounded = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0x1p14f) & 0xF;
  } else if (size < kLargest) {
    rounded = ((size + 0x7FFFF + (size >> 20 & 1)) >> 20) - kBias;
  }
  return {static_cast<std::uint8_t>(sign | rounded)};
}

constexpr float to_float(F8e4m3 value) {
  const std::uint32_t size = value.bits & 0x7F;
  const float sign = (value.bits & 0x80) != 0 ? -1.0f : 1.0f;
  if (size < 8) return sign * static_cast<float>(size) * 0x1p-9f;
  return sign * std::bit_cast<float>((size + ((127 - 7) << 3)) << 20);
}

}  // namespace gauntlet
