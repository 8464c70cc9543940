// How fast decoding is with guesses, beside without: pairs of repetitions in one run.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "engine/measure/closed_loop.h"
#include "engine/measure/guessing.h"
#include "stats/interval.h"

namespace gauntlet::study::inline bench {

/// Who guesses in a benchmark.
struct GuessPlan {
  engine::Speculation speculation;             // the oracle's, where one is asked for
  std::optional<double> oracle_tokens_a_step;  // none: who guesses is real
  std::shared_ptr<engine::OracleDrafter> oracle = nullptr;

  /// "ngram, up to 7 guesses a step, as many as pay"; an oracle is named as one.
  std::string describe() const;
};

struct GuessedRow {
  std::string test;  // "decode", "closed loop"
  std::string activations;
  std::int64_t streams = 0;
  std::int64_t context = 0;  // tokens of each prompt
  std::int64_t tokens = 0;   // of each answer that are timed
  stats::Interval tokens_per_s;
  stats::Interval plain_tokens_per_s;
  stats::Interval ratio;     // of each pair
  double tokens_a_step = 0;  // of a stream
  engine::SpeculationCounts guessed;
  int repetitions = 0;

  nlohmann::ordered_json to_json(const GuessPlan& plan) const;
};

/// How long to repeat, and who waits for it.
struct GuessRepetitions {
  int least = 6;
  double seconds = 2;
  std::function<void(const std::string& what)> show;
  std::function<bool()> is_interrupted;
};

/// Decoding of so many streams after such prompts; or a closed loop.
Expected<GuessedRow> measure_guesses(engine::Executor& executor, const GuessPlan& plan,
                                     const engine::DecodeTest& test,
                                     const GuessRepetitions& repetitions);
Expected<GuessedRow> measure_guesses(engine::Executor& executor, const GuessPlan& plan,
                                     const engine::ClosedLoop& loop,
                                     const GuessRepetitions& repetitions);

}  // namespace gauntlet::study::inline bench
