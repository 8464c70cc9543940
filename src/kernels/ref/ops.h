// The operations of gpt-oss, one obvious loop each, summed in float64: what every other kernel is
// judged by.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace gauntlet::kernels::ref {

/// The sixteen values of FP4, by nibble.
double fp4_value(int nibble);
/// 2^(byte - 127).
double e8m0_value(int byte);
/// MXFP4 with neighbours in a byte, the low nibble first; one scale byte per 32 elements.
std::vector<double> dequantise_mxfp4(std::span<const std::uint8_t> nibbles,
                                     std::span<const std::uint8_t> scale_bytes);

/// weights [rows, cols] times x [cols], plus bias [rows].
std::vector<double> linear(std::span<const double> weights, std::span<const double> x,
                           std::span<const double> bias);

std::vector<double> rms_norm(std::span<const double> x, std::span<const double> weight,
                             double epsilon);

/// The clamped SwiGLU of gpt-oss: (up + 1) * gate * sigmoid(1.702 * gate).
double swiglu(double gate, double up, double limit);

struct AttentionInput {
  std::span<const double> q;       // [head_dim], already scaled
  std::span<const double> keys;    // [positions, head_dim], the last being the query's own
  std::span<const double> values;  // the same
  double sink = 0;                 // a logit without a value
  std::int64_t window = 0;         // 0: all; otherwise so many positions, the query's own included
};
std::vector<double> attention(const AttentionInput& input);

}  // namespace gauntlet::kernels::ref
