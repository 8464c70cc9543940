// Comparing two runs target by target, by intervals: a difference counts only where the intervals
// part.
#pragma once
#include <string>
#include <vector>

#include "lab/records/run_record.h"

namespace gauntlet::lab::inline records {

struct RunDifference {
  enum class Verdict { same, faster, slower, unclear, only_in_a, only_in_b, status_changed };
  std::string id;
  std::string backend;
  std::string sweep;  // "n=1024" for one value of a sweep
  Verdict verdict = Verdict::same;
  std::string status_a;
  std::string status_b;
  Estimate speedup_a;
  Estimate speedup_b;
  double ratio = 0;  // speedup of b over speedup of a
};

const char* name_of(RunDifference::Verdict verdict);

/// same: the intervals overlap and both are tight (half width under 5%); unclear: they overlap but
/// one is wide; faster, slower: they do not overlap.
std::vector<RunDifference> compare_runs(const RunRecord& a, const RunRecord& b);

}  // namespace gauntlet::lab::inline records
