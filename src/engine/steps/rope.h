// Rotary positions with YaRN, as gpt-oss trained them: the ramp's bounds are not rounded.
#pragma once
#include <cstdint>
#include <vector>

#include "model/config.h"

namespace gauntlet::engine::inline steps {

class Rope {
 public:
  explicit Rope(const model::ModelConfig& config);

  std::int64_t half() const { return static_cast<std::int64_t>(frequencies_.size()); }
  /// Writes cos and sin [head_dim / 2] of a position, both times the attention factor.
  void angles(std::int64_t position, float* cos, float* sin) const;
  const std::vector<float>& frequencies() const { return frequencies_; }
  double attention_factor() const { return factor_; }

 private:
  std::vector<float> frequencies_;
  double factor_ = 1;
};

/// Rotates one head in halves: element i turns with element i + half.
void rotate(float* head, std::int64_t half, const float* cos, const float* sin);

}  // namespace gauntlet::engine::inline steps
