#include "lab/records/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lab/records/fake_results.h"

namespace gauntlet::lab::inline records {
namespace {

using Verdict = RunDifference::Verdict;

Result measured(const std::string& id, stats::Interval speedup) { return pair_result(id, speedup); }
Result without_speedup(const std::string& id, Status status) {
  return {.id = id, .status = status};
}
RunRecord record_of(std::vector<Result> results) { return {.results = std::move(results)}; }

RunDifference compare_two(Result a, Result b) {
  const auto differences = compare_runs(record_of({std::move(a)}), record_of({std::move(b)}));
  EXPECT_EQ(differences.size(), 1u);
  return differences.at(0);
}
Verdict verdict_of(stats::Interval a, stats::Interval b) {
  return compare_two(measured("x", a), measured("x", b)).verdict;
}

TEST(CompareRuns, counts_a_difference_where_the_interval_of_the_ratio_leaves_1) {
  EXPECT_EQ(verdict_of({2, 1.95, 2.05}, {2.2, 2.15, 2.25}), Verdict::faster);
  EXPECT_EQ(verdict_of({2.2, 2.15, 2.25}, {2, 1.95, 2.05}), Verdict::slower);
  EXPECT_EQ(verdict_of({2, 1.98, 2.02}, {2.01, 1.99, 2.03}), Verdict::same);
}

TEST(CompareRuns, does_not_call_it_the_same_when_either_interval_is_wide) {
  EXPECT_EQ(verdict_of({2, 1.5, 2.5}, {2, 1.95, 2.05}), Verdict::unclear);
  EXPECT_EQ(verdict_of({2, 1.95, 2.05}, {2, 1.5, 2.5}), Verdict::unclear);
  EXPECT_EQ(verdict_of({2, NAN, NAN}, {3, 2.95, 3.05}), Verdict::unclear);
}

TEST(CompareRuns, gives_the_ratio_of_the_speedups_with_its_interval) {
  const RunDifference difference =
      compare_two(measured("x", {2, 1.98, 2.02}), measured("x", {3, 2.97, 3.03}));
  EXPECT_DOUBLE_EQ(difference.ratio.value, 1.5);
  EXPECT_NEAR(difference.ratio.lo, 1.479, 0.001);
  EXPECT_NEAR(difference.ratio.hi, 1.521, 0.001);
  EXPECT_EQ(difference.a.value, 2);
  EXPECT_EQ(difference.b.value, 3);
  EXPECT_EQ(difference.status_a, "passed");
  EXPECT_EQ(difference.kind, "pair");
  EXPECT_EQ(difference.label(), "x");
}

TEST(CompareRuns, compares_each_comparison_of_a_ladder) {
  Result later = ladder_result("labs:gemm");
  later.comparisons[1].speedup = around(1.5, 0.01);  // tiled → async
  later.comparisons[2].speedup = around(4.5, 0.01);
  later.status = Status::no_gain;
  const auto differences =
      compare_runs(record_of({ladder_result("labs:gemm")}), record_of({later}));
  std::vector<std::string> lines;
  for (const RunDifference& d : differences) {
    lines.push_back(d.label() + ": " + name_of(d.verdict));
    EXPECT_EQ(d.status_a, "passed");
    EXPECT_EQ(d.status_b, "no_gain");
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"labs:gemm naive → tiled (step): same",
                                             "labs:gemm tiled → async (step): slower",
                                             "labs:gemm naive → async (total): slower",
                                             "labs:gemm library → async (yardstick): same"}));
}

TEST(CompareRuns, names_rungs_that_only_one_run_has) {
  Result shorter = ladder_result("labs:gemm");
  shorter.comparisons = {shorter.comparisons[0]};
  const auto differences =
      compare_runs(record_of({shorter}), record_of({ladder_result("labs:gemm")}));
  ASSERT_EQ(differences.size(), 4u);
  EXPECT_EQ(differences[0].verdict, Verdict::same);
  EXPECT_EQ(differences[1].verdict, Verdict::only_in_b);
  EXPECT_EQ(differences[1].to, "async");
}

TEST(CompareRuns, reports_a_status_that_changed_where_there_is_nothing_to_compare) {
  const RunDifference difference =
      compare_two(measured("x", {2, 2, 2}), without_speedup("x", Status::wrong));
  EXPECT_EQ(difference.verdict, Verdict::status_changed);
  EXPECT_EQ(difference.status_a, "passed");
  EXPECT_EQ(difference.status_b, "wrong");
  EXPECT_EQ(difference.ratio.value, 0);
  EXPECT_EQ(
      compare_two(without_speedup("x", Status::skipped), without_speedup("x", Status::skipped))
          .verdict,
      Verdict::same);
}

TEST(CompareRuns, names_what_only_one_run_has) {
  const auto differences =
      compare_runs(record_of({measured("a", {1, 1, 1}), measured("b", {1, 1, 1})}),
                   record_of({measured("b", {1, 1, 1}), measured("c", {4, 4, 4})}));
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].id, "a");
  EXPECT_EQ(differences[0].verdict, Verdict::only_in_a);
  EXPECT_EQ(differences[1].verdict, Verdict::same);
  EXPECT_EQ(differences[2].id, "c");
  EXPECT_EQ(differences[2].verdict, Verdict::only_in_b);
  EXPECT_EQ(differences[2].b.value, 4);
}

TEST(CompareRuns, keeps_backends_and_values_of_a_sweep_apart) {
  Result gpu = measured("x", {9, 9, 9});
  gpu.backend = BackendKind::cuda;
  Result small = measured("x", {3, 3, 3}), large = measured("x", {5, 5, 5});
  small.sweep_key = large.sweep_key = "n";
  small.knobs = {{"n", 8}};
  large.knobs = {{"n", 64}};
  const RunRecord run = record_of({measured("x", {1, 1, 1}), gpu, small, large});
  const auto differences = compare_runs(run, run);
  ASSERT_EQ(differences.size(), 4u);
  for (const RunDifference& difference : differences) EXPECT_DOUBLE_EQ(difference.ratio.value, 1);
  EXPECT_EQ(differences[0].sweep, "");
  EXPECT_EQ(differences[1].sweep, "n=64");
  EXPECT_EQ(differences[2].sweep, "n=8");
  EXPECT_EQ(differences[3].on, "cuda");
}

TEST(CompareRuns, has_a_name_for_every_verdict) {
  EXPECT_STREQ(name_of(Verdict::same), "same");
  EXPECT_STREQ(name_of(Verdict::unclear), "unclear");
  EXPECT_STREQ(name_of(Verdict::only_in_b), "only in B");
  EXPECT_STREQ(name_of(Verdict::status_changed), "status changed");
}

TEST(CompareRuns, compares_a_goal_by_its_metric_and_by_speed) {
  const auto tail = [](double gain) {
    Result result = pair_result("ch16:queue", around(1, 0.01));
    result.goal = "tail_latency";
    result.goal_metric = "p99_ms";
    result.comparisons[0].gain = around(gain, 0.01);
    return result;
  };
  const auto differences = compare_runs(record_of({tail(4)}), record_of({tail(3)}));
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].metric, "p99_ms");
  EXPECT_EQ(differences[0].label(), "ch16:queue p99_ms");
  EXPECT_EQ(differences[0].verdict, Verdict::worse);
  EXPECT_DOUBLE_EQ(differences[0].ratio.value, 0.75);
  EXPECT_EQ(differences[1].metric, "");
  EXPECT_EQ(differences[1].verdict, Verdict::same);
  EXPECT_EQ(compare_runs(record_of({tail(3)}), record_of({tail(4)}))[0].verdict, Verdict::better);
}

TEST(CompareRuns, does_not_match_ranks_of_another_number_or_transport) {
  const auto with = [](int count, const char* transport) {
    Result result = pair_result("ch04:all_reduce", around(2, 0.01));
    result.backend = BackendKind::ranks;
    result.ranks = {.count = count, .transport = transport};
    return result;
  };
  const auto verdicts = [&](const Result& a, const Result& b) {
    std::vector<Verdict> all;
    for (const auto& d : compare_runs(record_of({a}), record_of({b}))) all.push_back(d.verdict);
    return all;
  };
  const std::vector apart = {Verdict::only_in_a, Verdict::only_in_b};
  EXPECT_EQ(verdicts(with(2, kMpi), with(2, kMpi)), std::vector{Verdict::same});
  EXPECT_EQ(verdicts(with(2, kMpi), with(2, kThreads)), apart);
  EXPECT_EQ(verdicts(with(2, kMpi), with(4, kMpi)), apart);
}

}  // namespace
}  // namespace gauntlet::lab::inline records
