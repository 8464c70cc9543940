// Does one model get faster on more ranks? Meshes of several sizes on this machine, in turns:
// tokens per second, efficiency, and the share of the time in which ranks wait for each other.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/measure/speed.h"
#include "engine/ranks/rank_executor.h"
#include "model/weights.h"
#include "stats/interval.h"

namespace gauntlet::study::inline ranks {

struct RankScalePlan {
  std::vector<int> ranks = {1, 2};  // ascending; the first is what the others are compared with
  engine::RankSums sums = engine::RankSums::reduced;
  engine::EngineOptions options;  // threads: of each rank; none: CPUs over the most ranks
  std::vector<engine::SpeedTest> tests;
  int rounds = 8;
};

/// "decode, batch 8"
std::string name_of(const engine::SpeedTest& test);
/// A prompt, and decoding at batch 1 and 8.
std::vector<engine::SpeedTest> scale_tests(const model::ModelConfig& config);

struct RankScalePoint {
  int ranks = 1;
  std::string mesh;
  engine::SpeedTest test;
  stats::Interval tokens_per_s;
  stats::Interval speedup;          // over the fewest ranks, round by round
  stats::Interval efficiency;       // of that, for each rank that was added
  double waiting = 0;               // share of the time, mean of the ranks
  double sent_bytes_per_token = 0;  // of all ranks together
  std::int64_t weight_bytes = 0;    // of the rank that has most
};

struct RankScaling {
  std::string model;
  std::string sums;
  int threads = 1;  // of each rank
  int cpus = 1;
  int rounds = 0;
  std::vector<RankScalePoint> points;

  /// Ranks take turns on CPUs there.
  bool is_oversubscribed(int ranks) const { return ranks * threads > cpus; }
};

struct ScaleWatcher {
  std::function<void(const std::string& what)> show = {};
  std::function<bool()> is_interrupted = {};
};

Expected<RankScaling> measure_scaling(const model::ModelWeights& weights, const RankScalePlan& plan,
                                      const ScaleWatcher& watcher);

}  // namespace gauntlet::study::inline ranks
