// What a run finds out about one target on one backend, and its JSON form (docs/results.md is the
// schema).
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/knobs.h"

namespace gauntlet::lab {

inline constexpr int kResultSchemaVersion = 1;

enum class Status { passed, no_gain, regressed, wrong, crashed, timed_out, skipped };
const char* name_of(Status status);
std::optional<Status> status_from(const std::string& name);
/// True for the statuses that make a run fail: wrong, crashed, timed_out, regressed.
bool is_failure(Status status);

/// A median with its 95% interval.
struct Estimate {
  double median = 0;
  double lo = 0;
  double hi = 0;
};

struct SideResult {
  Estimate ns;        // time of one run
  double spread = 0;  // interquartile range over median
  std::int64_t samples = 0;
  double gb_per_s = 0;  // of the bytes that must move
  double gflop_per_s = 0;
  double ceiling_percent = 0;
};

struct MetricResult {
  double baseline = 0;
  double optimized = 0;
  std::string unit;
};

struct VerificationResult {
  double max_error = 0;     // largest error relative to magnitude, of any check of either side
  double bound = 0;         // what was allowed there
  std::int64_t checks = 0;  // outputs compared with the reference
  double checked_percent =
      100;  // of the elements compared with the reference (the rest: written and not NaN)
};

struct WitnessResult {
  std::string name;
  std::string meaning;
  std::string source;  // counter, fact, none
  bool collected = false;
  std::string why_not;  // when not collected
  double baseline = 0;
  double optimized = 0;
  bool moved = false;
  std::string expected;  // "falls by at least 4x"
};

/// What the machine did while a target was timed.
struct Conditions {
  int processes = 0;
  int blocks = 0;
  int dropped_blocks = 0;  // thermally slowed, dropped whole
  double sm_clock_mhz_min = 0;
  double sm_clock_mhz_max = 0;
  double power_w_max = 0;
  double temperature_c_max = 0;
  std::vector<std::string> throttle_reasons;
  bool cold = false;
};

struct Result {
  std::string id;
  BackendKind backend = BackendKind::cpu;
  std::string kind;  // comparison, demonstration
  std::string chapter;
  std::string technique;
  std::string title;
  std::string claim;
  std::string goal;
  std::map<std::string, std::int64_t> knobs;
  std::string sweep_key;  // set when the result is one of a sweep

  Status status = Status::skipped;
  std::string reason;
  std::vector<std::string> notes;  // what a reader should know beside the status
  std::string log;                 // path below the run's folder

  std::optional<Estimate> speedup;
  std::optional<SideResult> baseline;
  std::optional<SideResult> optimized;
  double ceiling_percent = 0;  // of the optimized side
  std::string bound_by;        // memory, compute
  double intensity = 0;        // FLOPs per byte
  VerificationResult verification;
  std::map<std::string, MetricResult> metrics;
  WitnessResult witness;
  std::map<std::string, MetricResult> counters;  // from --profile
  Conditions conditions;
  std::int64_t samples = 0;
  double seconds = 0;  // wall time the target took
};

nlohmann::json to_json(const Result& result);
Result result_from_json(const nlohmann::json& json);

}  // namespace gauntlet::lab
