// What a run finds out about one target on one backend, and its JSON form (docs/results.md is the
// schema).
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/author/knobs.h"
#include "stats/change.h"
#include "stats/interval.h"

namespace gauntlet::lab::inline records {

inline constexpr int kResultSchemaVersion = 2;

enum class Status { passed, no_gain, regressed, wrong, crashed, timed_out, skipped };
const char* name_of(Status status);
std::optional<Status> status_from(const std::string& name);
/// True for the statuses that make a run fail: wrong, crashed, timed_out, regressed.
bool is_failure(Status status);

struct SideResult {
  std::string name;    // "baseline", "optimized", a rung's name, a library's
  std::string role;    // baseline, optimized, rung, yardstick
  stats::Interval ns;  // time of one run
  double spread = 0;   // interquartile range over median
  std::int64_t samples = 0;
  double gb_per_s = 0;  // of the bytes that must move
  double gflop_per_s = 0;
  double ceiling_percent = 0;  // 0: not known
};

/// A number of each side beyond its time. Those without an interval are single readings.
struct MetricResult {
  std::string unit;
  std::vector<stats::Interval> sides;  // [sides]; NaN where a side has none
};

struct VerificationResult {
  double max_error = 0;             // largest error relative to magnitude, of any check of any side
  double bound = 0;                 // what was allowed there
  std::int64_t checks = 0;          // outputs compared with the reference
  std::int64_t timed_checks = 0;    // of these, outputs of timed samples
  double recomputed_percent = 100;  // of the elements compared one by one with the reference
  double seen_percent = 100;        // of the elements that some check saw, sums over all included
};

/// The counter or fact that must move if the technique is what made the difference.
struct WitnessResult {
  std::string name;
  std::string meaning;
  std::string source;  // counter, trace, fact, outcome, none
  bool collected = false;
  std::string why_not;  // when not collected
  double before = 0;
  double after = 0;
  bool moved = false;
  std::string expected;  // "falls by at least 4x"

  bool shows_mechanism() const { return collected && moved; }
};

/// Two sides of a target.
struct ComparisonResult {
  std::string from;
  std::string to;
  std::string kind;  // pair: baseline to optimized; step: from the rung before; total: from the
                     // first rung; yardstick: from a library
  stats::Interval speedup;
  /// How many times better the goal's metric is, where the goal is not speed; value 0: none.
  stats::Interval gain;
  stats::Gain verdict = stats::Gain::no_gain;  // of the gain where there is one, of the speedup
  WitnessResult witness;                       // of pairs and steps
};

/// A yardstick that could not be there: the rest was measured without it.
struct AbsentSide {
  std::string name;
  std::string reason;  // "needs cudnn: libcudnn.so.9 was not found"
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

/// What carries the bytes of ranks.
inline constexpr const char* kMpi = "mpi";          // processes under mpirun
inline constexpr const char* kThreads = "threads";  // of one process

/// Several ranks: how many there were, and what carried their bytes. Processes under MPI and
/// threads of one process are not the same machine to a target.
struct RankSetup {
  int count = 0;          // 0: the backend has none
  std::string transport;  // kMpi, kThreads

  bool operator==(const RankSetup&) const = default;
};
std::string place_name(const std::string& backend, const RankSetup& ranks);

struct Result {
  std::string id;
  BackendKind backend = BackendKind::cpu;
  RankSetup ranks;   // of backend ranks
  std::string kind;  // comparison, demonstration
  std::string chapter;
  std::string technique;
  std::string title;
  std::string claim;
  std::string goal;
  std::string goal_metric;  // among the metrics; empty where the goal is speed
  std::map<std::string, std::int64_t> knobs;
  std::string sweep_key;  // set when the result is one of a sweep

  Status status = Status::skipped;
  std::string reason;
  std::vector<std::string> notes;  // what a reader should know beside the status
  std::string log;                 // path below the run's folder

  std::vector<SideResult> sides;              // empty when nothing was measured
  std::vector<ComparisonResult> comparisons;  // empty when nothing was measured
  std::vector<AbsentSide> absent;             // yardsticks
  std::string bound_by;                       // memory, disk, compute
  double intensity = 0;                       // FLOPs per byte
  VerificationResult verification;
  std::map<std::string, MetricResult> metrics;
  std::map<std::string, std::vector<double>> counters;  // from --profile: [sides], NaN: none
  Conditions conditions;
  double seconds = 0;  // wall time the target took

  /// Where it ran, as tables, keys and trends tell it apart: "cpu", "cuda", "2 ranks (mpi)".
  std::string on() const { return place_name(name_of(backend), ranks); }
  /// Rungs instead of a baseline and an optimized side.
  bool is_ladder() const;
  bool measured() const { return !comparisons.empty(); }
  /// What the target is judged by: the pair's comparison, or the last rung against the first.
  /// Only of a measured result.
  const ComparisonResult& headline() const;
  const SideResult& side(const std::string& name) const;
  /// The sides of the headline.
  const SideResult& first() const { return side(headline().from); }
  const SideResult& best() const { return side(headline().to); }
  /// Samples of all sides.
  std::int64_t samples() const;
  /// "n=1024" for one value of a sweep, empty without one.
  std::string sweep() const;
};

/// What a passed result leaves open about its cause: "mechanism not witnessed: run with --profile
/// minimal". Of a ladder, each step that gained is asked for its witness. Empty where all were
/// seen to move, and for other statuses.
std::string unwitnessed(const Result& result);

nlohmann::json to_json(const Result& result);
/// Reads version 2, and version 1 with its two sides. `version` is the file's.
Result result_from_json(const nlohmann::json& json, int version = kResultSchemaVersion);

}  // namespace gauntlet::lab::inline records
