#include "lab/records/compare.h"

#include <algorithm>
#include <map>

#include "core/check.h"

namespace gauntlet::lab::inline records {
namespace {

using Verdict = RunDifference::Verdict;

std::map<std::string, const Result*> by_key(const RunRecord& record) {
  std::map<std::string, const Result*> results;
  for (const Result& result : record.results) {
    results[result.id + " " + result.on() + " " + result.sweep()] = &result;
  }
  return results;
}

Verdict verdict_of(const stats::Interval& ratio, bool of_speed) {
  switch (stats::change(ratio)) {
    case stats::Change::same:
      return Verdict::same;
    case stats::Change::higher:
      return of_speed ? Verdict::faster : Verdict::better;
    case stats::Change::lower:
      return of_speed ? Verdict::slower : Verdict::worse;
    case stats::Change::unclear:
      return Verdict::unclear;
  }
  fail("no such change");
}

const ComparisonResult* find(const Result& result, const ComparisonResult& like) {
  const auto found = std::ranges::find_if(result.comparisons, [&](const ComparisonResult& c) {
    return c.kind == like.kind && c.from == like.from && c.to == like.to;
  });
  return found == result.comparisons.end() ? nullptr : &*found;
}

/// What is known of one target, one of its runs missing or not.
class TargetDifferences {
 public:
  TargetDifferences(const Result* a, const Result* b, std::vector<RunDifference>& out)
      : a_(a), b_(b), out_(out) {}

  void add() {
    const bool in_a = a_ && a_->measured(), in_b = b_ && b_->measured();
    if (!in_a && !in_b) {
      add_unmeasured();
      return;
    }
    if (in_a) {
      for (const ComparisonResult& one : a_->comparisons) {
        add(&one, in_b ? find(*b_, one) : nullptr);
      }
    }
    if (in_b) {
      for (const ComparisonResult& one : b_->comparisons) {
        if (!in_a || !find(*a_, one)) add(nullptr, &one);
      }
    }
  }

 private:
  RunDifference start() const {
    const Result& known = a_ ? *a_ : *b_;
    return {.id = known.id,
            .on = known.on(),
            .sweep = known.sweep(),
            .status_a = a_ ? name_of(a_->status) : "",
            .status_b = b_ ? name_of(b_->status) : ""};
  }
  void add_unmeasured() {
    RunDifference difference = start();
    difference.verdict = !b_                        ? Verdict::only_in_a
                         : !a_                      ? Verdict::only_in_b
                         : a_->status == b_->status ? Verdict::same
                                                    : Verdict::status_changed;
    out_.push_back(std::move(difference));
  }
  /// By the goal's metric, where there is one, and by speed.
  void add(const ComparisonResult* in_a, const ComparisonResult* in_b) {
    const std::string& metric = (a_ ? *a_ : *b_).goal_metric;
    const auto has_gain = [](const ComparisonResult* one) { return one && one->gain.value > 0; };
    if (!metric.empty() && (has_gain(in_a) || has_gain(in_b))) {
      add(in_a, in_b, metric, &ComparisonResult::gain);
    }
    add(in_a, in_b, "", &ComparisonResult::speedup);
  }
  void add(const ComparisonResult* in_a, const ComparisonResult* in_b, const std::string& metric,
           stats::Interval ComparisonResult::* figure) {
    RunDifference difference = start();
    const ComparisonResult& known = in_a ? *in_a : *in_b;
    difference.metric = metric;
    difference.kind = known.kind;
    difference.from = known.from;
    difference.to = known.to;
    if (in_a) difference.a = in_a->*figure;
    if (in_b) difference.b = in_b->*figure;
    if (in_a && in_b) {
      difference.ratio = stats::ratio(difference.a, difference.b);
      difference.verdict = verdict_of(difference.ratio, metric.empty());
    } else if (a_ && b_ && !(a_->measured() && b_->measured())) {
      difference.verdict = Verdict::status_changed;
    } else {
      difference.verdict = in_a ? Verdict::only_in_a : Verdict::only_in_b;
    }
    out_.push_back(std::move(difference));
  }

  const Result* a_;
  const Result* b_;
  std::vector<RunDifference>& out_;
};

}  // namespace

std::string RunDifference::label() const {
  std::string text = id;
  if (!sweep.empty()) text += " " + sweep;
  if (!kind.empty() && kind != "pair") text += " " + from + " → " + to + " (" + kind + ")";
  if (!metric.empty()) text += " " + metric;
  return text;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
      return "same";
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::better:
      return "better";
    case Verdict::worse:
      return "worse";
    case Verdict::unclear:
      return "unclear";
    case Verdict::only_in_a:
      return "only in A";
    case Verdict::only_in_b:
      return "only in B";
    case Verdict::status_changed:
      return "status changed";
  }
  fail("no such verdict");
}

std::vector<RunDifference> compare_runs(const RunRecord& a, const RunRecord& b) {
  std::vector<RunDifference> differences;
  const auto results_a = by_key(a), results_b = by_key(b);
  const auto in = [](const auto& results, const std::string& key) {
    const auto found = results.find(key);
    return found == results.end() ? nullptr : found->second;
  };
  auto keys = results_a;
  keys.insert(results_b.begin(), results_b.end());
  for (const auto& [key, ignored] : keys) {
    TargetDifferences(in(results_a, key), in(results_b, key), differences).add();
  }
  return differences;
}

}  // namespace gauntlet::lab::inline records
