// Looks into a step while it runs: which experts its tokens chose, and what each layer left. For
// studies of the router and for comparing backends layer by layer; a watched step is slow.
#pragma once
#include <cstdint>
#include <span>

namespace gauntlet::engine::inline steps {

class LayerProbe {
 public:
  virtual ~LayerProbe() = default;

  /// The choices of the step's tokens, [tokens, experts_per_token], best first. May be changed.
  virtual void routed(std::int64_t layer, std::span<std::int32_t> chosen,
                      std::span<float> weights) = 0;
  /// The residual after a layer, [tokens, hidden].
  virtual void finished(std::int64_t layer, std::span<const float> x) = 0;
};

}  // namespace gauntlet::engine::inline steps
