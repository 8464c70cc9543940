// Measuring one pair in one process: warm up, calibrate, then ABBA blocks over rotated inputs until
// the interval of the ratio is tight or the budget ends. Outputs of randomly chosen timed samples
// are verified.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/measure/backend.h"
#include "lab/records/result.h"
#include "stats/statistics.h"
#include "lab/measure/verify.h"

namespace gauntlet::lab::inline measure {

struct MeasureOptions {
  double budget_s = 1.0;      // for timed blocks
  double half_width = 0.004;  // stop when the ratio's relative half width is below this
  int min_blocks = 8;
  int max_blocks = 400;
  int fixed_blocks = 0;    // not 0: exactly this many blocks, no stop rule
  double warmup_s = 0.05;  // per side
  int warmup_runs = 1;     // at least
  bool cold = false;
  int checked_blocks = 2;  // whose timed outputs are verified
  std::uint64_t seed = 1;
};

struct MeasureProgress {
  std::string phase;  // "verify", "calibrate", "measure"
  std::string side;
  double ratio = 0;
  int blocks = 0;
};

struct Measurement {
  bool ok = true;
  std::string reason;  // when not ok: why the result does not count
  std::string side;    // which side is at fault
  ProcessBlocks blocks;
  std::int64_t repetitions[2] = {0, 0};  // runs per sample
  VerificationResult verification;
  double side_error[2] = {0, 0};  // largest verification error of each side
  std::map<std::string, double> facts[2];
  Conditions conditions;
};

Measurement measure_pair(const Target& target, const Knobs& knobs, Backend& backend,
                         const MeasureOptions& options,
                         const std::function<void(const MeasureProgress&)>& progress);

}  // namespace gauntlet::lab::inline measure
