// How fast a stack is and what it gained: the figures of a duel.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/records/result.h"
#include "stats/change.h"
#include "stats/interval.h"

namespace gauntlet::study::inline results {

/// How many times faster the second side was, and what that is called.
struct Ratio {
  stats::Interval ratio;
  stats::Gain label = stats::Gain::no_gain;
};

struct WorkloadGain {
  std::string name;
  Ratio gain;
  bool beside = false;  // shown, but no part of the mean
};

struct Gain {
  Ratio all;  // the geometric mean
  std::vector<WorkloadGain> workloads;
  std::optional<lab::Conditions> conditions;  // none in files of earlier versions
};

/// One workload on one side.
struct Figure {
  std::string name;  // "prompt", "decode_8"
  std::int64_t batch = 0;
  std::int64_t context = 0;
  std::int64_t tokens = 0;
  stats::Interval ms;  // of a step, of the whole prompt for "prompt"
  stats::Interval tok_s;
  std::optional<double> percent_of_limit;  // none without ceilings
  std::string bound_by;                    // empty likewise
  std::int64_t repetitions = 0;
};

/// One side of a duel between engines.
struct EngineFigures {
  std::vector<std::string> plan;
  std::int64_t weight_bytes = 0;
  std::string read_from;  // the memory whose rate is the limit; empty: unknown
  std::vector<Figure> figures;
  std::optional<stats::Interval> ttft_ms;
  std::optional<stats::Interval> tpot_ms;

  /// Null where it was not run.
  const Figure* find(const std::string& name) const;
};

}  // namespace gauntlet::study::inline results
