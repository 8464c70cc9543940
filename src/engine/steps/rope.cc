#include "engine/steps/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gauntlet::engine::inline steps {

Rope::Rope(const model::ModelConfig& config) {
  const auto dim = static_cast<double>(config.head_dim);
  const auto turns_at = [&](double turns) {
    return dim * std::log(config.rope.original_positions / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(config.rope_theta));
  };
  const bool scaled = config.rope.factor > 1;
  const double low = scaled ? std::max(turns_at(config.rope.beta_fast), 0.0) : 0;
  const double high = scaled ? std::min(turns_at(config.rope.beta_slow), dim - 1) : 1;
  for (std::int64_t i = 0; i < config.head_dim / 2; ++i) {
    const double frequency = std::pow(config.rope_theta, -2.0 * static_cast<double>(i) / dim);
    const double span = high > low ? high - low : 0.001;
    const double ramp = scaled ? std::clamp((static_cast<double>(i) - low) / span, 0.0, 1.0) : 0.0;
    frequencies_.push_back(
        static_cast<float>(frequency * (1 - ramp) + frequency / config.rope.factor * ramp));
  }
  if (scaled) factor_ = 0.1 * std::log(config.rope.factor) + 1;
}

void Rope::angles(std::int64_t position, float* cos, float* sin) const {
  for (std::size_t i = 0; i < frequencies_.size(); ++i) {
    // The angle is rounded to float32 before the cosine, as the reference implementation does.
    const float angle = static_cast<float>(position) * frequencies_[i];
    cos[i] = static_cast<float>(std::cos(static_cast<double>(angle)) * factor_);
    sin[i] = static_cast<float>(std::sin(static_cast<double>(angle)) * factor_);
  }
}

void rotate(float* head, std::int64_t half, const float* cos, const float* sin) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = head[i + half];
    head[i] = a * cos[i] - b * sin[i];
    head[i + half] = b * cos[i] + a * sin[i];
  }
}

}  // namespace gauntlet::engine::inline steps
