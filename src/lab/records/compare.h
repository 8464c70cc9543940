// Comparing two runs target by target, by the one rule for "the same" (stats/change.h).
#pragma once
#include <string>
#include <vector>

#include "lab/records/run_record.h"

namespace gauntlet::lab::inline records {

/// A pair, or one comparison of a ladder, in both runs. Where the goal is not speed there are two:
/// one of the goal's metric, and one of the speed.
struct RunDifference {
  enum class Verdict {
    same,
    faster,  // of the speed
    slower,
    better,  // of a metric
    worse,
    unclear,
    only_in_a,
    only_in_b,
    status_changed
  };
  std::string id;
  std::string on;      // Result::on(): runs with other ranks are no match
  std::string sweep;   // "n=1024" for one value of a sweep
  std::string metric;  // what is compared; empty: the speed
  std::string kind;    // pair, step, total, yardstick; empty where no run measured anything
  std::string from;
  std::string to;
  Verdict verdict = Verdict::same;
  std::string status_a;
  std::string status_b;
  stats::Interval a;  // speedup, or gain of the metric; value 0: none
  stats::Interval b;
  stats::Interval ratio;  // of b over a; value 0: none

  /// "ch07:coalesced_copy n=1024", "labs:gemm tiled → tma (step)", "ch16:batching p99_ms"
  std::string label() const;
};

const char* name_of(RunDifference::Verdict verdict);

/// In the order of ids; the comparisons of a ladder follow one another as the run has them.
std::vector<RunDifference> compare_runs(const RunRecord& a, const RunRecord& b);

}  // namespace gauntlet::lab::inline records
