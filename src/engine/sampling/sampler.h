// From logits to a token: exact, seedable, and blind to whoever shares the batch.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/expected.h"

namespace gauntlet::engine::inline sampling {

struct SamplingParams {
  float temperature = 0;  // 0: the largest logit, the lowest id on ties
  float top_p = 1;
  int top_k = 0;  // 0: no limit
  float min_p = 0;
  std::uint64_t seed = 0;
  std::int64_t step = 0;  // how many tokens this request has drawn; makes each draw its own
};

/// Holds an error that names the first parameter no draw can be made with.
Expected<void> validate(const SamplingParams& params);

/// Where in [0, 1) a request's next draw falls: by its seed and step alone.
double draw_point(const SamplingParams& params);

/// What sample() answers when the mask, or logits that are NaN or -inf, leave no token.
inline constexpr std::int32_t kNoChoice = -1;

/// Draws a token. Filters in this order, each over what the one before left: mask, top-k, top-p,
/// min-p, all over the probabilities at this temperature. `allowed` has a bit per id; empty allows
/// all. The draw depends on logits, parameters and mask alone.
std::int32_t sample(std::span<const float> logits, const SamplingParams& params,
                    std::span<const std::uint32_t> allowed);

}  // namespace gauntlet::engine::inline sampling
