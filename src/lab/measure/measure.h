// Measuring one target in one process: warm up, calibrate, then blocks in which all sides take
// turns, until the interval of the ratios is tight or the budget ends. Every sample has new inputs
// in its own buffers; which outputs are verified is drawn after the sample ran.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/measure/backend.h"
#include "lab/records/result.h"
#include "stats/blocks.h"

namespace gauntlet::lab::inline measure {

struct MeasureOptions {
  double budget_s = 1.0;      // for blocks: timed runs and the inputs made for them
  double half_width = 0.004;  // stop when every ratio's relative half width is below this
  int min_blocks = 8;
  int max_blocks = 400;
  int fixed_blocks = 0;    // not 0: exactly this many blocks, no stop rule
  double warmup_s = 0.05;  // per side
  int warmup_runs = 1;     // at least
  bool cold = false;
  int least_checks = 4;  // timed samples of each side that are verified, at least
  int least_traps = 3;   // samples of each side whose inputs changed in part only, at least
  std::uint64_t seed = 1;
};

struct MeasureProgress {
  std::string phase;  // "verify", "calibrate", "measure"
  std::string side;
  double ratio = 0;
  int blocks = 0;
};

struct SideMeasurement {
  std::int64_t repetitions = 0;  // runs per sample
  double error = 0;              // largest verification error
  std::map<std::string, double> facts;
  std::map<std::string, double> outcomes;  // the average over the blocks that count
  std::map<std::string, std::vector<std::vector<float>>> distributions;  // [blocks that count]
};

/// In a reason that a rank gives which found nothing itself.
inline constexpr const char* kOnAnotherRank = "on another rank";

struct Measurement {
  bool ok = true;
  std::string reason;  // when not ok: why the result does not count
  std::string side;    // which side is at fault
  stats::ProcessBlocks blocks;
  std::vector<SideMeasurement> sides;
  VerificationResult verification;
  Conditions conditions;
  std::int64_t set_bytes = 0;  // of one set of buffers
  int sets = 0;
};

Measurement measure_target(const Target& target, const Knobs& knobs, Backend& backend,
                           const MeasureOptions& options,
                           const std::function<void(const MeasureProgress&)>& progress);

}  // namespace gauntlet::lab::inline measure
