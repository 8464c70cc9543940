// How fast an engine is on this machine, beside what the machine allows: prefill and decode at each
// batch and context, and closed loops through the service. What `gauntlet bench` measures.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "engine/measure/closed_loop.h"
#include "engine/measure/speed.h"
#include "lab/profile/kernel_shares.h"
#include "stats/interval.h"
#include "study/bench/guessed_speed.h"
#include "study/bench/limits.h"

namespace gauntlet::study::inline bench {

/// What is to be measured.
struct SpeedPlan {
  static constexpr int kMostRepetitions = 40;

  std::vector<std::int64_t> prefill = {64, 512};
  std::vector<std::int64_t> decode = {128};
  std::vector<std::int64_t> batch = {1};
  std::vector<std::int64_t> context = {0};
  double seconds = 2;   // to repeat each test for
  int repetitions = 6;  // at least: the extremes of six hold the median with 97%
  bool breakdown = false;
  std::vector<engine::ClosedLoop> loops;
  bool guesses = false;  // decoding and closed loops with guesses, too

  /// Decode after prefill, so that what is alike stands together.
  std::vector<engine::SpeedTest> tests() const;

  /// What an executor must have room for.
  struct Needs {
    std::int64_t sequences = 1;
    std::int64_t positions = 1;
    std::int64_t sequence_positions = 0;
  };
  Needs needs() const;
};

struct SpeedRow {
  engine::SpeedTest test;
  std::string activations;
  stats::Interval tokens_per_s;
  double bytes_per_token = 0;
  double ms_per_step = 0;
  double bytes_per_step = 0;
  double experts_per_layer = 0;  // that a step's tokens chose, on average
  engine::SpeedLimit limit;      // of one repetition
  double percent_of_limit = 0;
  int repetitions = 0;
  std::vector<lab::KernelShare> kernels;  // with a breakdown, on a GPU
};

struct LoopRow {
  engine::ClosedLoop loop;
  std::string activations;
  stats::Interval tokens_per_s;
  /// What the same prompts and the same tokens take without a scheduler between them: prefill of
  /// all streams, then decode at their mean context.
  double alone_tokens_per_s = 0;
  double percent_of_alone = 0;
  std::optional<double> gap_us;  // median idle time of the device between two steps
};

struct SpeedReport {
  std::string model;
  std::int64_t weight_bytes = 0;
  std::size_t threads = 0;  // 0 on a GPU
  std::string where;        // "2 threads", "NVIDIA H200"
  std::vector<std::vector<std::string>> plans;
  Limits limits;
  std::vector<SpeedRow> rows;
  std::vector<LoopRow> loops;
  std::vector<GuessedRow> guessed;  // beside the same without
  GuessPlan guesses;                // whose these are

  nlohmann::ordered_json to_json() const;
};

/// Who waits for it.
struct SpeedWatcher {
  std::function<void(const std::string& what)> show;
  std::function<bool()> is_interrupted;
};

/// Adds what this executor does to the report, whose limits and guesses are known.
Expected<void> measure_speed(engine::Executor& executor, const SpeedPlan& plan,
                             const SpeedWatcher& watcher, SpeedReport& report);

}  // namespace gauntlet::study::inline bench
