#include "lab/records/expectations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/os/fake_tree.h"
#include "core/os/files.h"
#include "lab/records/fake_results.h"

namespace gauntlet::lab::inline records {
namespace {

using testing::HasSubstr;
using Verdict = Comparison::Verdict;

Result result_of(stats::Interval speedup, double optimized_ns = 1000,
                 BackendKind backend = BackendKind::cuda) {
  Result result = pair_result("ch07:twice", speedup, Status::passed, optimized_ns);
  result.backend = backend;
  result.knobs = {{"n", 500}};
  return result;
}

Provenance run_on(const std::string& board, const std::string& run_id = "run-1") {
  return {.run_id = run_id, .commit = "abc123", .recorded_at = 1700000000, .board = board};
}

class ExpectationsTest : public testing::Test {
 protected:
  std::string folder() const { return (folder_.root() / "expectations").string(); }
  Expectations loaded() const {
    auto expectations = Expectations::load(folder(), "nvidia-h200");
    EXPECT_TRUE(expectations) << (expectations ? "" : expectations.error().message);
    return expectations ? *expectations : Expectations{};
  }
  /// The expectation that a result leaves behind.
  Expectation recorded(const Result& result) const {
    Expectations expectations = loaded();
    EXPECT_TRUE(expectations.record(result, run_on("GPU-1")));
    EXPECT_EQ(expectations.entries().size(), 1u);
    return expectations.entries().begin()->second;
  }
  /// What is expected when boards of these speedups, 1% wide, were recorded one after the other.
  Expectation recorded_on_boards(const std::vector<double>& speedups) const {
    Expectations expectations = loaded();
    int board = 0;
    for (const double speedup : speedups) {
      expectations.record(result_of(around(speedup, 0.01)), run_on(std::to_string(++board)));
    }
    return expectations.entries().begin()->second;
  }
  FakeTree folder_;
};

TEST_F(ExpectationsTest, keep_what_is_known_of_a_yardstick_that_was_absent) {
  const Result whole = ladder_result("labs:gemm");
  Result without = whole;
  without.sides.pop_back();
  without.comparisons.pop_back();
  without.absent = {{.name = "library", .reason = "needs cublas"}};
  Expectations expectations = loaded();
  ASSERT_TRUE(expectations.record(whole, run_on("GPU-1")));
  EXPECT_EQ(compare_with(expectations.entries().begin()->second, without, "GPU-1").verdict,
            Verdict::as_expected);
  ASSERT_TRUE(expectations.record(without, run_on("GPU-1", "run-2")));
  const Expectation& kept = expectations.entries().begin()->second;
  ASSERT_EQ(kept.boards.size(), 1u);
  EXPECT_EQ(kept.newest().provenance.run_id, "run-2");
  ASSERT_TRUE(kept.ratio("library", "async"));
  EXPECT_DOUBLE_EQ(kept.ratio("library", "async")->value, 0.75);
  ASSERT_TRUE(kept.time_ns("library"));
  EXPECT_EQ(kept.newest().ratios.size(), whole.comparisons.size());

  // It is no figure of another board, none of a program that changed, and none that is there.
  ASSERT_TRUE(expectations.record(without, run_on("GPU-2")));
  EXPECT_EQ(kept.newest().ratios.size(), without.comparisons.size());
  ASSERT_TRUE(expectations.record(without, run_on("GPU-1"), Expectations::OtherBoards::drop));
  EXPECT_FALSE(kept.ratio("library", "async"));
  ASSERT_TRUE(expectations.record(whole, run_on("GPU-1")));
  ASSERT_TRUE(expectations.record(whole, run_on("GPU-1")));
  EXPECT_EQ(kept.newest().ratios.size(), whole.comparisons.size());
}

TEST_F(ExpectationsTest, are_empty_without_a_file) {
  EXPECT_TRUE(loaded().empty());
  EXPECT_EQ(loaded().machine_key(), "nvidia-h200");
}

TEST_F(ExpectationsTest, hold_another_goal_to_its_metric_and_to_its_speed) {
  const auto with = [](double gain, double speedup) {
    Result result = result_of(around(speedup, 0.01), 1000, BackendKind::cpu);
    result.goal = "tail_latency";
    result.goal_metric = "p99_ms";
    result.comparisons[0].gain = around(gain, 0.01);
    return result;
  };
  Expectations saved = loaded();
  ASSERT_TRUE(saved.record(with(4, 1), run_on("")));
  ASSERT_TRUE(saved.save(folder()));
  const Expectation expected = loaded().entries().at("ch07:twice cpu");
  EXPECT_EQ(expected.gain("baseline", "optimized")->value, 4);
  EXPECT_EQ(compare_with(expected, with(4, 1), "").verdict, Verdict::as_expected);
  const Comparison fell = compare_with(expected, with(3, 1), "");
  EXPECT_EQ(fell.verdict, Verdict::regressed);
  EXPECT_EQ(fell.reason,
            "the gain in p99_ms 3.000 [2.970, 3.030] fell below the expected 4.000 (−3%) of run "
            "run-1");
  EXPECT_EQ(compare_with(expected, with(4, 0.8), "").verdict, Verdict::regressed);
  const Comparison rose = compare_with(expected, with(5, 1), "");
  EXPECT_EQ(rose.verdict, Verdict::better);
  EXPECT_THAT(rose.reason, HasSubstr("the gain in p99_ms 5.000 is above the expected 4.000"));
}

TEST_F(ExpectationsTest, of_ranks_hold_for_their_number_and_transport) {
  Result result = result_of(around(2, 0.01), 1000, BackendKind::ranks);
  result.ranks = {.count = 2, .transport = kMpi};
  Expectations expectations = loaded();
  ASSERT_TRUE(expectations.record(result, run_on("")));
  EXPECT_NE(expectations.find(result), nullptr);
  result.ranks.transport = kThreads;
  EXPECT_EQ(expectations.find(result), nullptr);
  result.ranks = {.count = 4, .transport = kMpi};
  EXPECT_EQ(expectations.find(result), nullptr);
}

TEST_F(ExpectationsTest, survive_the_way_through_the_file) {
  Expectations saved = loaded();
  saved.record(result_of(around(2.5, 0.02)), run_on("GPU-1"));
  Result cpu = result_of(around(1.5), 2000, BackendKind::cpu);
  cpu.status = Status::no_gain;
  saved.record(cpu, run_on(""));
  ASSERT_TRUE(saved.save(folder()));
  const Expectations got = loaded();
  ASSERT_EQ(got.entries().size(), 2u);
  const Expectation& gpu = got.entries().at("ch07:twice cuda");
  EXPECT_EQ(gpu.ratio("baseline", "optimized")->value, 2.5);
  EXPECT_NEAR(gpu.ratio("baseline", "optimized")->tolerance, 0.06, 1e-12);
  EXPECT_EQ(gpu.time_ns("baseline")->value, 2500);
  EXPECT_EQ(gpu.time_ns("optimized")->value, 1000);
  EXPECT_EQ(gpu.knobs, (std::map<std::string, std::int64_t>{{"n", 500}}));
  EXPECT_EQ(gpu.newest().status, "passed");
  EXPECT_EQ(gpu.newest().provenance.run_id, "run-1");
  EXPECT_EQ(gpu.newest().provenance.commit, "abc123");
  EXPECT_EQ(gpu.newest().provenance.recorded_at, 1700000000);
  EXPECT_EQ(gpu.newest().provenance.board, "GPU-1");
  const Expectation& host = got.entries().at("ch07:twice cpu");
  EXPECT_EQ(host.newest().status, "no_gain");
  EXPECT_FALSE(host.time_ns("baseline")) << "times of a CPU do not repeat well enough";
  EXPECT_FALSE(host.time_ns("optimized"));
}

TEST_F(ExpectationsTest, keep_each_comparison_and_each_time_of_a_ladder) {
  Expectations saved = loaded();
  saved.record(ladder_result("labs:gemm"), run_on("GPU-1"));
  ASSERT_TRUE(saved.save(folder()));
  const Expectation got = loaded().entries().at("labs:gemm cuda");
  EXPECT_EQ(got.newest().ratios.size(), 4u);
  EXPECT_EQ(got.ratio("tiled", "async")->value, 2);
  EXPECT_EQ(got.ratio("naive", "async")->value, 6);
  EXPECT_EQ(got.ratio("library", "async")->value, 0.75);
  EXPECT_FALSE(got.ratio("async", "naive"));
  EXPECT_EQ(got.time_ns("tiled")->value, 400);
  EXPECT_FALSE(got.time_ns("fastest"));
}

TEST_F(ExpectationsTest, read_a_file_of_version_1) {
  folder_.write("expectations/nvidia-h200.json", R"({
    "machine": "nvidia-h200", "schema_version": 1, "expectations": {
      "ch07:twice cuda": {
        "ratio": {"median": 2, "tolerance": 0.05}, "status": "passed", "knobs": {"n": 500},
        "baseline_ns": {"median": 2000, "tolerance": 0.03},
        "optimized_ns": {"median": 1000, "tolerance": 0.04},
        "run_id": "r0", "commit": "old", "recorded_at": 1},
      "ch07:twice cpu": {
        "ratio": {"median": 3, "tolerance": 0.05}, "status": "passed", "knobs": {"n": 500},
        "run_id": "r0", "commit": "old", "recorded_at": 1}}})");
  Expectations got = loaded();
  const Expectation& gpu = got.entries().at("ch07:twice cuda");
  EXPECT_EQ(gpu.ratio("baseline", "optimized")->value, 2);
  EXPECT_EQ(gpu.ratio("baseline", "optimized")->tolerance, 0.05);
  EXPECT_EQ(gpu.time_ns("optimized")->tolerance, 0.04);
  EXPECT_EQ(gpu.newest().provenance.run_id, "r0");
  EXPECT_FALSE(got.entries().at("ch07:twice cpu").time_ns("optimized"));
  EXPECT_EQ(compare_with(gpu, result_of(around(1.8)), "GPU-1").verdict, Verdict::regressed);
  got.record(result_of(around(2.2)), run_on("GPU-1"));
  EXPECT_EQ(got.entries().at("ch07:twice cuda").boards.size(), 1u)
      << "its board is not known and may be this one";
}

TEST_F(ExpectationsTest, of_the_tree_are_readable) {
  for (const auto& file :
       std::filesystem::directory_iterator(GAUNTLET_SOURCE_DIR "/expectations")) {
    if (file.path().extension() != ".json") continue;
    const auto got = Expectations::load(file.path().parent_path(), file.path().stem());
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_FALSE(got->empty()) << file.path();
  }
}

TEST_F(ExpectationsTest, keep_machines_apart) {
  Expectations saved = loaded();
  saved.record(result_of(around(2)), run_on("GPU-1"));
  ASSERT_TRUE(saved.save(folder()));
  EXPECT_TRUE(Expectations::load(folder(), "nvidia-b200")->empty());
}

TEST_F(ExpectationsTest, refuse_a_broken_file_by_its_path) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"expectations": [1]})",
        R"({"expectations": {"x cpu": {"ratio": 2}}})",
        R"({"schema_version": 2, "expectations": {"x cpu": {"knobs": {}, "boards": []}}})"}) {
    folder_.write("expectations/nvidia-h200.json", text);
    const auto broken = Expectations::load(folder(), "nvidia-h200");
    ASSERT_FALSE(broken) << text;
    EXPECT_THAT(broken.error().message,
                HasSubstr("nvidia-h200.json is not a file of expectations"));
  }
}

TEST_F(ExpectationsTest, cannot_be_saved_below_a_file) {
  folder_.write("expectations", "in the way");
  EXPECT_FALSE(loaded().save(folder()));
}

TEST_F(ExpectationsTest, refuse_a_file_of_a_later_version) {
  folder_.write("expectations/nvidia-h200.json", R"({"schema_version": 3, "expectations": {}})");
  const auto later = Expectations::load(folder(), "nvidia-h200");
  ASSERT_FALSE(later);
  EXPECT_THAT(later.error().message, HasSubstr("has version 3"));
}

TEST_F(ExpectationsTest, take_three_half_widths_as_tolerance_within_limits) {
  const auto tolerance = [&](double half_width) {
    return recorded(result_of(around(2, half_width))).ratio("baseline", "optimized")->tolerance;
  };
  EXPECT_DOUBLE_EQ(tolerance(0.001), 0.03);
  EXPECT_NEAR(tolerance(0.03), 0.09, 1e-12);
  EXPECT_DOUBLE_EQ(tolerance(0.5), 0.20);
}

TEST_F(ExpectationsTest, add_half_the_range_of_the_boards_to_the_tolerance) {
  const ExpectedValue two = *recorded_on_boards({1.8, 2.2}).ratio("baseline", "optimized");
  EXPECT_NEAR(two.value, 2, 1e-12);
  EXPECT_NEAR(two.between, 0.1, 1e-12);
  EXPECT_NEAR(two.tolerance, 0.13, 1e-12);
  const ExpectedValue far = *recorded_on_boards({1, 3}).ratio("baseline", "optimized");
  EXPECT_NEAR(far.tolerance, 0.53, 1e-12) << "the limits are for the noise within a board";
}

TEST_F(ExpectationsTest, fail_no_board_for_what_it_recorded_itself) {
  const std::vector<double> boards = {2, 2, 2, 1.6};
  const Expectation expectation = recorded_on_boards(boards);
  EXPECT_EQ(expectation.boards.size(), 4u);
  for (std::size_t i = 0; i < boards.size(); ++i) {
    Result again = result_of(around(boards[i], 0.001));
    again.sides[0].ns = around(1600);  // the speedup alone is asked about
    EXPECT_EQ(compare_with(expectation, again, std::to_string(i + 1)).verdict, Verdict::as_expected)
        << boards[i];
  }
}

TEST_F(ExpectationsTest, replace_what_the_same_board_recorded_before) {
  Expectations expectations = loaded();
  expectations.record(result_of(around(2)), run_on("GPU-1"));
  expectations.record(result_of(around(2.1)), run_on("GPU-2"));
  Result slower = result_of(around(1.5));
  slower.status = Status::regressed;
  expectations.record(slower, run_on("GPU-1", "run-2"));
  ASSERT_EQ(expectations.entries().size(), 1u);
  const Expectation& now = expectations.entries().begin()->second;
  ASSERT_EQ(now.boards.size(), 2u);
  EXPECT_EQ(now.newest().provenance.run_id, "run-2");
  EXPECT_NEAR(now.ratio("baseline", "optimized")->value, 1.8, 1e-12);
}

TEST_F(ExpectationsTest, drop_other_boards_when_asked_or_when_knobs_changed) {
  using OtherBoards = Expectations::OtherBoards;
  Expectations expectations = loaded();
  const auto boards = [&] { return expectations.entries().begin()->second.boards.size(); };
  expectations.record(result_of(around(2)), run_on("GPU-1"));
  expectations.record(result_of(around(3)), run_on("GPU-2"), OtherBoards::drop);
  EXPECT_EQ(boards(), 1u);
  expectations.record(result_of(around(3)), run_on("GPU-3"));
  EXPECT_EQ(boards(), 2u);
  Result larger = result_of(around(4));
  larger.knobs["n"] = 1000;
  expectations.record(larger, run_on("GPU-4"));
  EXPECT_EQ(boards(), 1u);
}

TEST_F(ExpectationsTest, take_a_cpu_for_one_board) {
  Expectations expectations = loaded();
  for (const double speedup : {2.0, 3.0}) {
    expectations.record(result_of(around(speedup), 1000, BackendKind::cpu), run_on(""));
  }
  const Expectation& now = expectations.entries().begin()->second;
  EXPECT_EQ(now.boards.size(), 1u);
  EXPECT_EQ(now.ratio("baseline", "optimized")->value, 3);
}

TEST(Provenance, names_the_boards_of_a_gpu_alone) {
  RunRecord record{.run_id = "r1", .started_at = 7};
  record.build.commit = "abc";
  record.machine.cpu = {.model = "AMD EPYC", .cores = 2};
  record.machine.gpus = {{.name = "NVIDIA H200", .uuid = "GPU-2"},
                         {.name = "NVIDIA H200", .uuid = "GPU-1"}};
  const Provenance gpu = provenance_of(record, BackendKind::cuda);
  EXPECT_EQ(gpu.board, "GPU-1+GPU-2");
  EXPECT_EQ(gpu.run_id, "r1");
  EXPECT_EQ(gpu.commit, "abc");
  EXPECT_EQ(gpu.recorded_at, 7);
  EXPECT_EQ(provenance_of(record, BackendKind::cpu).board, "");
  EXPECT_EQ(provenance_of(record, BackendKind::ranks).board, "");
  EXPECT_EQ(machine_key_of(record.machine, BackendKind::cuda), "2x-nvidia-h200");
  EXPECT_EQ(machine_key_of(record.machine, BackendKind::ranks), "amd-epyc-2c");
}

TEST_F(ExpectationsTest, record_only_what_was_measured_with_default_knobs) {
  Expectations expectations = loaded();
  const auto left_out = [&](const Result& result) {
    const bool recorded = expectations.record(result, run_on("GPU-1"));
    EXPECT_NE(recorded, expectations.empty());
    return !recorded;
  };
  Result swept = result_of(around(2));
  swept.sweep_key = "n";
  EXPECT_TRUE(left_out(swept));
  Result wrong = result_of(around(2));
  wrong.status = Status::wrong;
  EXPECT_TRUE(left_out(wrong));
  Result skipped{.id = "ch07:twice", .status = Status::skipped};
  EXPECT_TRUE(left_out(skipped));
  EXPECT_TRUE(left_out(result_of(around(NAN))));
  EXPECT_FALSE(left_out(result_of(around(2))));
}

TEST_F(ExpectationsTest, apply_to_the_same_knobs_and_backend_alone) {
  Expectations expectations = loaded();
  expectations.record(result_of(around(2)), run_on("GPU-1"));
  EXPECT_NE(expectations.find(result_of(around(9))), nullptr);
  Result larger = result_of(around(2));
  larger.knobs["n"] = 1000;
  EXPECT_EQ(expectations.find(larger), nullptr);
  EXPECT_EQ(expectations.find(result_of(around(2), 1000, BackendKind::cpu)), nullptr);
}

/// Expected: a speedup of 2 within 3%, 2000 ns and 1000 ns.
class CompareWith : public ExpectationsTest {
 protected:
  Comparison compare(const Result& result) const {
    return compare_with(recorded(result_of(around(2))), result, "GPU-1");
  }
};

TEST_F(CompareWith, is_as_expected_within_the_tolerance) {
  for (double speedup : {1.95, 2.0, 2.05}) {
    EXPECT_EQ(compare(result_of(around(speedup), 1000)).verdict, Verdict::as_expected) << speedup;
  }
}

TEST_F(CompareWith, regresses_when_the_whole_interval_is_below) {
  const Comparison comparison = compare(result_of(around(1.9)));
  EXPECT_EQ(comparison.verdict, Verdict::regressed);
  EXPECT_THAT(comparison.reason,
              HasSubstr("speedup 1.900 [1.900, 1.900] fell below the expected 2.000"));
  EXPECT_THAT(comparison.reason, HasSubstr("of run run-1"));
  EXPECT_EQ(compare(result_of(around(1.9, 0.05))).verdict, Verdict::as_expected)
      << "the interval still reaches";
}

TEST_F(CompareWith, is_better_when_the_whole_interval_is_above) {
  const Comparison comparison = compare(result_of(around(2.1), 900));
  EXPECT_EQ(comparison.verdict, Verdict::better);
  EXPECT_THAT(comparison.reason, HasSubstr("--update-expectations"));
  EXPECT_EQ(compare(result_of(around(2.1, 0.05), 900)).verdict, Verdict::as_expected);
}

TEST_F(CompareWith, regresses_when_both_sides_got_slower_alike) {
  const Comparison comparison = compare(result_of(around(2), 1100));
  EXPECT_EQ(comparison.verdict, Verdict::regressed);
  EXPECT_THAT(comparison.reason, HasSubstr("optimized takes 1.1 µs, expected 1.0 µs (+3%)"));
}

TEST_F(CompareWith, regresses_when_the_baseline_alone_got_slower) {
  Result result = result_of(around(2));
  result.sides[0].ns = around(2100);
  const Comparison comparison = compare(result);
  EXPECT_EQ(comparison.verdict, Verdict::regressed);
  EXPECT_THAT(comparison.reason, HasSubstr("baseline takes"));
}

TEST_F(CompareWith, looks_at_times_on_a_gpu_only) {
  const Expectation expectation = recorded(result_of(around(2), 1000, BackendKind::cpu));
  EXPECT_EQ(
      compare_with(expectation, result_of(around(2), 5000, BackendKind::cpu), "GPU-1").verdict,
      Verdict::as_expected);
}

TEST_F(CompareWith, holds_each_comparison_of_a_ladder_against_its_own) {
  const Expectation expectation = recorded(ladder_result("labs:gemm"));
  Result ladder = ladder_result("labs:gemm");
  EXPECT_EQ(compare_with(expectation, ladder, "GPU-1").verdict, Verdict::as_expected);
  ladder.comparisons[1].speedup = around(1.8, 0.01);
  const Comparison step = compare_with(expectation, ladder, "GPU-1");
  EXPECT_EQ(step.verdict, Verdict::regressed);
  EXPECT_THAT(step.reason, HasSubstr("speedup of async over tiled 1.800"));
  ladder = ladder_result("labs:gemm");
  ladder.sides[1].ns = around(450);
  EXPECT_THAT(compare_with(expectation, ladder, "GPU-1").reason, HasSubstr("tiled takes 0.5 µs"));
  ladder = ladder_result("labs:gemm");
  ladder.comparisons[2].speedup = around(7, 0.01);
  EXPECT_EQ(compare_with(expectation, ladder, "GPU-1").verdict, Verdict::better);
}

TEST_F(CompareWith, has_nothing_against_a_rung_that_is_new) {
  Result shorter = ladder_result("labs:gemm");
  shorter.sides.erase(shorter.sides.begin() + 2);
  shorter.comparisons.resize(1);
  EXPECT_EQ(compare_with(recorded(shorter), ladder_result("labs:gemm"), "GPU-1").verdict,
            Verdict::as_expected);
}

TEST_F(CompareWith, names_the_boards_it_relies_on) {
  const Comparison comparison =
      compare_with(recorded_on_boards({1.9, 2.1}), result_of(around(1.5), 500), "1");
  EXPECT_THAT(comparison.reason, HasSubstr("the expected 2.000 (−8%) of 2 boards"));
}

TEST_F(CompareWith, says_nothing_of_a_result_without_a_speedup) {
  EXPECT_EQ(compare({.id = "ch07:twice", .status = Status::crashed}).verdict, Verdict::none);
}

TEST(ExpectationsFolder, takes_the_environment_then_the_tree_of_the_program) {
  const FakeTree tree;
  std::filesystem::create_directories(tree.root() / "build/release");
  const std::string program = (tree.root() / "build/release/gauntlet").string();
  ASSERT_EQ(setenv("GAUNTLET_EXPECTATIONS", "/chosen", 1), 0);
  EXPECT_EQ(expectations_folder(program), "/chosen");
  ASSERT_EQ(unsetenv("GAUNTLET_EXPECTATIONS"), 0);
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(tree.root() / "build");
  EXPECT_EQ(expectations_folder(program), "expectations");
  std::filesystem::create_directories(tree.root() / "expectations");
  EXPECT_EQ(expectations_folder(program), (tree.root() / "expectations").string());
  std::filesystem::current_path(tree.root());
  EXPECT_EQ(expectations_folder(program), "expectations");
  std::filesystem::current_path(here);
}

TEST_F(CompareWith, does_not_judge_another_board_by_one) {
  const Expectation one = recorded(result_of(around(2)));
  const Comparison fell = compare_with(one, result_of(around(1.5)), "GPU-2");
  EXPECT_EQ(fell.verdict, Verdict::none);
  EXPECT_THAT(fell.reason, HasSubstr("recorded on one other board: speedup 1.500"));
  const Comparison same = compare_with(one, result_of(around(2)), "GPU-2");
  EXPECT_EQ(same.verdict, Verdict::none);
  EXPECT_EQ(same.reason, "");
}

TEST_F(CompareWith, judges_another_board_by_how_far_boards_are_apart) {
  const auto verdict = [](const Expectation& boards, double speedup) {
    Result result = result_of(around(speedup, 0.001));
    result.sides[0].ns = around(1000 * speedup);
    return compare_with(boards, result, "another").verdict;
  };
  // Alike: within 3% and what twelve standard deviations of two boards predict.
  const Expectation alike = recorded_on_boards({2, 2.004});
  EXPECT_EQ(verdict(alike, 1.92), Verdict::as_expected);
  EXPECT_EQ(verdict(alike, 1.85), Verdict::regressed);
  // Two boards that are 20% apart predict next to nothing; five do.
  EXPECT_EQ(verdict(recorded_on_boards({1.8, 2.2}), 1.0), Verdict::as_expected);
  const Expectation five = recorded_on_boards({1.8, 1.9, 2, 2.1, 2.2});
  EXPECT_EQ(verdict(five, 1.6), Verdict::as_expected);
  EXPECT_EQ(verdict(five, 1.2), Verdict::regressed);
}

}  // namespace
}  // namespace gauntlet::lab::inline records
