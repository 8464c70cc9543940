#include "lab/records/compare.h"

#include <map>

#include "stats/statistics.h"

namespace gauntlet::lab::inline records {
namespace {

constexpr double kTight = 0.05;

std::string sweep_of(const Result& result) {
  return result.sweep_key.empty()
             ? ""
             : result.sweep_key + "=" + std::to_string(result.knobs.at(result.sweep_key));
}

std::map<std::string, const Result*> by_key(const RunRecord& record) {
  std::map<std::string, const Result*> results;
  for (const Result& result : record.results) {
    results[result.id + " " + name_of(result.backend) + " " + sweep_of(result)] = &result;
  }
  return results;
}

RunDifference::Verdict judge_difference(const Result& a, const Result& b) {
  using Verdict = RunDifference::Verdict;
  if (!a.speedup || !b.speedup)
    return a.status == b.status ? Verdict::same : Verdict::status_changed;
  if (b.speedup->lo > a.speedup->hi) return Verdict::faster;
  if (b.speedup->hi < a.speedup->lo) return Verdict::slower;
  const bool tight =
      relative_half_width(*a.speedup) < kTight && relative_half_width(*b.speedup) < kTight;
  return tight ? Verdict::same : Verdict::unclear;
}

}  // namespace

const char* name_of(RunDifference::Verdict verdict) {
  using Verdict = RunDifference::Verdict;
  switch (verdict) {
    case Verdict::same:
      return "same";
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::unclear:
      return "unclear";
    case Verdict::only_in_a:
      return "only in A";
    case Verdict::only_in_b:
      return "only in B";
    case Verdict::status_changed:
      return "status changed";
  }
  return "?";
}

std::vector<RunDifference> compare_runs(const RunRecord& a, const RunRecord& b) {
  using Verdict = RunDifference::Verdict;
  std::vector<RunDifference> differences;
  const auto results_a = by_key(a), results_b = by_key(b);
  const auto start = [](const Result& result) {
    return RunDifference{
        .id = result.id, .backend = name_of(result.backend), .sweep = sweep_of(result)};
  };
  for (const auto& [key, result] : results_a) {
    RunDifference difference = start(*result);
    difference.status_a = name_of(result->status);
    if (result->speedup) difference.speedup_a = *result->speedup;
    const auto other = results_b.find(key);
    if (other == results_b.end()) {
      difference.verdict = Verdict::only_in_a;
    } else {
      difference.status_b = name_of(other->second->status);
      difference.verdict = judge_difference(*result, *other->second);
      if (other->second->speedup) difference.speedup_b = *other->second->speedup;
      if (result->speedup && other->second->speedup) {
        difference.ratio = difference.speedup_b.median / difference.speedup_a.median;
      }
    }
    differences.push_back(difference);
  }
  for (const auto& [key, result] : results_b) {
    if (results_a.contains(key)) continue;
    RunDifference difference = start(*result);
    difference.verdict = Verdict::only_in_b;
    difference.status_b = name_of(result->status);
    if (result->speedup) difference.speedup_b = *result->speedup;
    differences.push_back(difference);
  }
  return differences;
}

}  // namespace gauntlet::lab::inline records
