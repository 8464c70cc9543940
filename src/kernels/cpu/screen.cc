#include "kernels/cpu/screen.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace gauntlet::kernels::cpu {
namespace {

constexpr float kLargestByte = 127;
constexpr int kExponentBias = 127;
constexpr double kLargestValue = 127 * 128;  // of two bytes: their high one stays within a byte
/// Float64 sums of float32 squares are off by far less.
constexpr double kSumRoom = 1 + 1e-9;

/// Adding and taking away these leaves the nearest whole number.
constexpr float kWholeF32 = 0x1.8p23f;
constexpr double kWholeF64 = 0x1.8p52;

float rounded_up(double value) {
  if (!(value <= FLT_MAX)) return std::numeric_limits<float>::infinity();
  const auto nearest = static_cast<float>(value);
  return nearest < value ? std::nextafter(nearest, FLT_MAX) : nearest;
}

struct Extent {
  float largest = 0;  // magnitude
  bool finite = true;
};
Extent extent_of(const float* block) {
  float largest = 0, zero = 0;
  for (int i = 0; i < kBlock; ++i) {
    largest = std::max(largest, std::abs(block[i]));
    zero += block[i] * 0.0f;  // not zero for what is not finite
  }
  return {largest, zero == 0};
}

/// The scale byte with which the largest value becomes 64 to 128; never that of a subnormal.
int scale_byte(float largest) {
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::max(exponent - 7 + kExponentBias, 1);
}

}  // namespace

ScreenNorms pack_row_int8(const float* row, std::int64_t cols, const RowPlace& place) {
  double residual_square = 0, row_square = 0;
  for (std::int64_t b = 0; b < cols / kBlock; ++b) {
    const float* block = row + b * kBlock;
    const Extent extent = extent_of(block);
    const int byte = extent.finite && extent.largest > 0 ? scale_byte(extent.largest) : 1;
    // A power of two: multiplying rounds only what is 2^-126 of a step.
    const float inverse = extent.finite ? std::ldexp(1.0f, kExponentBias - byte) : 0.0f;
    std::uint8_t bytes[kBlock];
    double residuals = 0, values = 0;
    for (int i = 0; i < kBlock; ++i) {
      const float value = extent.finite ? block[i] * inverse : 0.0f;
      const float nearest = (value + kWholeF32) - kWholeF32;
      const float whole = std::clamp(nearest, -kLargestByte, kLargestByte);
      const double residual = value - whole;
      const double larger = std::max(std::abs(value), std::abs(whole));
      residuals += residual * residual;
      values += larger * larger;
      bytes[i] = static_cast<std::uint8_t>(static_cast<int>(whole) + 128);
    }
    const double step_square = std::ldexp(1.0, 2 * (byte - kExponentBias));
    residual_square += residuals * step_square;
    row_square += extent.finite ? values * step_square : std::numeric_limits<double>::infinity();
    for (int word = 0; word < kBlock / 4; ++word) {
      std::memcpy(place.words + (b * (kBlock / 4) + word) * place.step, bytes + word * 4, 4);
    }
    place.scales[b * place.scale_step] = static_cast<std::uint8_t>(byte);
  }
  return {.residual = rounded_up(std::sqrt(residual_square) * kSumRoom),
          .row = rounded_up(std::sqrt(row_square) * kSumRoom)};
}

ScreenBound round_to_two_bytes(std::span<const float> x, const TwoByteRow& out) {
  const std::int64_t blocks = std::ssize(x) / kBlock;
  double norm = 0, rounded_norm = 0, residual_norm = 0;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const float* block = x.data() + b * kBlock;
    const Extent extent = extent_of(block);
    const float step = extent.largest / static_cast<float>(kLargestValue);
    const bool rounds = extent.finite && step >= FLT_MIN;
    const double inverse = rounds ? 1.0 / step : 0.0;
    std::int32_t sum = 0;
    for (int i = 0; i < kBlock; ++i) {
      const double value = block[i];
      const double nearest = rounds ? (value * inverse + kWholeF64) - kWholeF64 : 0.0;
      const auto whole =
          static_cast<std::int32_t>(std::clamp(nearest, -kLargestValue, kLargestValue));
      const std::int32_t high = (whole + 64) >> 7;
      out.high[b * kBlock + i] = static_cast<std::int8_t>(high);
      out.low[b * kBlock + i] = static_cast<std::int8_t>(whole - high * 128);
      sum += whole;
      const double rounded = rounds ? whole * static_cast<double>(step) : 0.0;
      norm += value * value;
      rounded_norm += rounded * rounded;
      residual_norm += (value - rounded) * (value - rounded);
    }
    out.steps[b] = rounds ? step : 0.0f;
    out.offsets[b] = -sum;
  }
  norm = std::sqrt(norm) * kSumRoom;
  rounded_norm = std::sqrt(rounded_norm) * kSumRoom;
  residual_norm = std::sqrt(residual_norm) * kSumRoom;

  // m roundings in a row change a sum of terms t by at most (e^(m u) - 1) * sum |t|, and sums of
  // magnitudes are at most products of norms. u is twice float32's, so that it need not round to
  // nearest. The chain has one rounding per column, or two where there is no fused product; the
  // bytes' sum one per block and those of its terms; four more are for adding the bound.
  constexpr double kUnit = 0x1p-23;
  const auto cols = static_cast<double>(x.size());
  const double of_chain = std::expm1((cols + 4) * kUnit);
  const double of_bytes = std::expm1((static_cast<double>(blocks) + 6) * kUnit);
  // What underflows: a result or an operand of the chain, below 2^-126; a step of the bytes' sum,
  // which is multiplied by less than 2^26.
  const double lost = cols * 0x1p-125;
  constexpr double kOwnRoom = 1 + 0x1p-20;  // of evaluating the bound in float32
  return {.per_residual = rounded_up(norm * kOwnRoom),
          .per_norm = rounded_up(
              (residual_norm + of_chain * norm + of_bytes * rounded_norm + lost) * kOwnRoom),
          .constant =
              rounded_up((static_cast<double>(blocks) * 0x1p-98 + lost * (1 + norm)) * kOwnRoom)};
}

}  // namespace gauntlet::kernels::cpu
