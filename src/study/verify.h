// Does a stack say what the one before it says: the same greedy tokens, up to the first choice that
// was close to a tie; and for lossy ones, how far perplexity moved.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "engine/scheduler.h"

namespace gauntlet::study {

/// Of each prompt, what followed it and by how much each token beat the next best.
struct GreedyRun {
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::vector<double>> margins;
};

/// The first prompt alone, the others together: kernels may differ by batch. The tokens are those
/// of steps that want nothing else, as speed is measured; the margins come from a second run.
Expected<GreedyRun> greedy(engine::Executor& executor,
                           const std::vector<std::vector<std::int32_t>>& prompts,
                           std::int64_t max_tokens);

/// The same through the serving loop, all prompts at once.
Expected<GreedyRun> served_greedy(engine::Executor& executor,
                                  const engine::SchedulerConfig& scheduler,
                                  const std::vector<std::vector<std::int32_t>>& prompts,
                                  std::int64_t max_tokens);

/// `before` judged tokens up to its first margin below the least, of each prompt.
struct Agreement {
  bool agrees = true;
  std::int64_t compared = 0;  // tokens that had to be equal
  std::int64_t of = 0;        // tokens in all
  std::string difference;     // the first one, in words; empty: none
};
Agreement compare(const GreedyRun& before, const GreedyRun& after, double least_margin);

}  // namespace gauntlet::study
