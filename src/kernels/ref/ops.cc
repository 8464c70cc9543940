#include "kernels/ref/ops.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace gauntlet::kernels::ref {

double fp4_value(int nibble) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return nibble & 8 ? -kMagnitudes[nibble & 7] : kMagnitudes[nibble & 7];
}

double e8m0_value(int byte) { return std::ldexp(1.0, byte - 127); }

std::vector<double> dequantise_mxfp4(std::span<const std::uint8_t> nibbles,
                                     std::span<const std::uint8_t> scale_bytes) {
  std::vector<double> values;
  for (std::size_t i = 0; i < nibbles.size() * 2; ++i) {
    const int nibble = i % 2 == 0 ? nibbles[i / 2] & 15 : nibbles[i / 2] >> 4;
    values.push_back(fp4_value(nibble) * e8m0_value(scale_bytes[i / 32]));
  }
  return values;
}

std::vector<double> linear(std::span<const double> weights, std::span<const double> x,
                           std::span<const double> bias) {
  check(weights.size() == x.size() * bias.size(), "linear: shapes disagree");
  std::vector<double> out(bias.begin(), bias.end());
  for (std::size_t r = 0; r < out.size(); ++r) {
    for (std::size_t c = 0; c < x.size(); ++c) out[r] += weights[r * x.size() + c] * x[c];
  }
  return out;
}

std::vector<double> rms_norm(std::span<const double> x, std::span<const double> weight,
                             double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  std::vector<double> out;
  for (std::size_t i = 0; i < x.size(); ++i) out.push_back(x[i] * scale * weight[i]);
  return out;
}

double swiglu(double gate, double up, double limit) {
  gate = std::min(gate, limit);
  up = std::clamp(up, -limit, limit);
  return (up + 1) * gate / (1 + std::exp(-1.702 * gate));
}

std::vector<double> attention(const AttentionInput& input) {
  const std::size_t dim = input.q.size();
  const std::size_t positions = input.keys.size() / dim;
  const auto window = static_cast<std::size_t>(input.window);
  const std::size_t first = window > 0 && positions > window ? positions - window : 0;
  std::vector<double> scores;
  double largest = input.sink;
  for (std::size_t p = first; p < positions; ++p) {
    double score = 0;
    for (std::size_t d = 0; d < dim; ++d) score += input.q[d] * input.keys[p * dim + d];
    scores.push_back(score);
    largest = std::max(largest, score);
  }
  double sum = std::exp(input.sink - largest);
  for (const double score : scores) sum += std::exp(score - largest);
  std::vector<double> out(dim, 0.0);
  for (std::size_t p = first; p < positions; ++p) {
    const double weight = std::exp(scores[p - first] - largest) / sum;
    for (std::size_t d = 0; d < dim; ++d) out[d] += weight * input.values[p * dim + d];
  }
  return out;
}

}  // namespace gauntlet::kernels::ref
