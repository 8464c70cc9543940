// Does a stack say what the one before it says: the same greedy tokens, up to the first choice that
// was close to a tie; or, where a router was undecided, the same choices with the same experts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/steps/executor.h"
#include "study/fidelity/expert_replay.h"
#include "study/ladder.h"

namespace gauntlet::study::inline fidelity {

using Texts = std::vector<std::vector<std::int32_t>>;

/// Of each prompt, what followed it and by how much each token beat the next best.
struct GreedyRun {
  Texts tokens;
  std::vector<std::vector<double>> margins;
};

/// The first prompt alone, the others together: kernels may differ by batch. The tokens are those
/// of steps that want nothing else, as speed is measured; the margins come from a second run.
Expected<GreedyRun> greedy(engine::Executor& executor, const Texts& prompts,
                           std::int64_t max_tokens);

/// The tokens through the serving loop, all prompts at once; and behind them those of a second
/// time, when beginnings can be in the prefix cache.
Expected<Texts> served_greedy(engine::Executor& executor, const ServingPolicy& policy,
                              const Texts& prompts, std::int64_t max_tokens);

/// Tokens must be those of `before` up to its first margin below the least, of each prompt. `after`
/// may hold the prompts more than once.
struct Agreement {
  bool agrees = true;
  std::int64_t compared = 0;  // tokens that had to be equal
  std::int64_t of = 0;        // tokens in all
  std::string where;          // the first one: "prompt 2, token 5"; empty: none
  std::string difference;     // the same with what differs

  /// Near ties came so early that less than half was judged.
  bool is_thin() const { return 2 * compared < of; }
};
Agreement compare(const GreedyRun& before, const Texts& after, double least_margin);

/// What a stack chose after each token of the texts that were forced on it, and by which experts.
struct Recording {
  Texts prompts;
  Texts forced;      // what followed the prompts
  GreedyRun chosen;  // best token and margin after each prompt and each forced token but the last
  RecordedExperts experts;
};
Expected<Recording> record(engine::Executor& executor, Texts prompts, Texts forced);

/// The second look at a stack whose own tokens differ, or say too little: the recorded experts are
/// replayed.
struct Replay {
  std::int64_t compared = 0;  // choices that had to be equal
  std::int64_t of = 0;        // choices in all
  std::int64_t experts = 0;   // choices of experts, by token and layer
  std::int64_t replaced = 0;  // of those, the ones that were other experts
  std::string wrong;          // in words; empty: it passed
};
/// The recorded tokens forced, every choice judged whose margin is not below the least. `own` is
/// what the stack says unwatched: where that differs, an expert must have been replaced before.
Expected<Replay> replay(engine::Executor& executor, Recording& recording, const Texts& own,
                        double least_margin);
/// Through the serving loop, which goes its own way after the first near tie of a prompt. Nobody
/// guesses: what was recorded has no experts of wrong guesses.
Expected<Replay> replay_served(engine::Executor& executor, const engine::SchedulerConfig& scheduler,
                               Recording& recording, const Texts& own, double least_margin);

}  // namespace gauntlet::study::inline fidelity
