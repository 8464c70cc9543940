// How well a model foretells a text: perplexity over windows that each begin anew.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "engine/steps/executor.h"

namespace gauntlet::engine::inline measure {

struct ScoreOptions {
  std::int64_t window = 512;                                             // tokens
  std::function<void(std::int64_t done, std::int64_t total)> on_window;  // after each
};

struct Score {
  std::int64_t tokens = 0;  // scored: whole windows only
  double mean_log_probability = 0;
  double perplexity = 0;
};

/// Cuts the tokens into windows, drops a last partial one, puts BOS before each and scores all
/// tokens of a window.
Expected<Score> score_tokens(Executor& executor, std::span<const std::int32_t> tokens,
                             const ScoreOptions& options);

}  // namespace gauntlet::engine::inline measure
