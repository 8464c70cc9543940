#include "lab/records/expectations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/fake_tree.h"
#include "core/files.h"

namespace gauntlet::lab::inline records {
namespace {

using testing::HasSubstr;
using Verdict = Comparison::Verdict;

Estimate exactly(double median, double relative_half_width = 0) {
  return {.median = median,
          .lo = median * (1 - relative_half_width),
          .hi = median * (1 + relative_half_width)};
}

Result result_of(Estimate speedup, double optimized_ns = 1000,
                 BackendKind backend = BackendKind::cuda) {
  return {.id = "ch07:twice",
          .backend = backend,
          .knobs = {{"n", 500}},
          .status = Status::passed,
          .speedup = speedup,
          .baseline = SideResult{.ns = exactly(optimized_ns * speedup.median)},
          .optimized = SideResult{.ns = exactly(optimized_ns)}};
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
    expectations.record(result, "run-1", "abc123", 1700000000);
    EXPECT_EQ(expectations.entries().size(), 1u);
    return expectations.entries().begin()->second;
  }
  FakeTree folder_;
};

TEST_F(ExpectationsTest, are_empty_without_a_file) {
  EXPECT_TRUE(loaded().empty());
  EXPECT_EQ(loaded().machine_key(), "nvidia-h200");
}

TEST_F(ExpectationsTest, survive_the_way_through_the_file) {
  Expectations saved = loaded();
  saved.record(result_of(exactly(2.5, 0.02)), "run-1", "abc123", 1700000000);
  Result cpu = result_of(exactly(1.5), 2000, BackendKind::cpu);
  cpu.status = Status::no_gain;
  saved.record(cpu, "run-2", "def456", 1700000001);
  ASSERT_TRUE(saved.save(folder()));
  const Expectations got = loaded();
  ASSERT_EQ(got.entries().size(), 2u);
  const Expectation& gpu = got.entries().at("ch07:twice cuda");
  EXPECT_EQ(gpu.ratio.median, 2.5);
  EXPECT_NEAR(gpu.ratio.tolerance, 0.06, 1e-12);
  EXPECT_EQ(gpu.baseline_ns->median, 2500);
  EXPECT_EQ(gpu.optimized_ns->median, 1000);
  EXPECT_EQ(gpu.status, "passed");
  EXPECT_EQ(gpu.knobs, (std::map<std::string, std::int64_t>{{"n", 500}}));
  EXPECT_EQ(gpu.run_id, "run-1");
  EXPECT_EQ(gpu.commit, "abc123");
  EXPECT_EQ(gpu.recorded_at, 1700000000);
  const Expectation& host = got.entries().at("ch07:twice cpu");
  EXPECT_EQ(host.status, "no_gain");
  EXPECT_FALSE(host.baseline_ns) << "times of a CPU do not repeat well enough";
  EXPECT_FALSE(host.optimized_ns);
}

TEST_F(ExpectationsTest, keep_machines_apart) {
  Expectations saved = loaded();
  saved.record(result_of(exactly(2)), "run-1", "abc", 1);
  ASSERT_TRUE(saved.save(folder()));
  EXPECT_TRUE(Expectations::load(folder(), "nvidia-b200")->empty());
}

TEST_F(ExpectationsTest, refuse_a_broken_file_by_its_path) {
  for (const char* text : {"", "{", "[]", "{}", R"({"expectations": [1]})",
                           R"({"expectations": {"x cpu": {"ratio": 2}}})"}) {
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

TEST_F(ExpectationsTest, take_three_half_widths_as_tolerance_within_limits) {
  EXPECT_DOUBLE_EQ(recorded(result_of(exactly(2, 0.001))).ratio.tolerance, 0.03);
  EXPECT_NEAR(recorded(result_of(exactly(2, 0.03))).ratio.tolerance, 0.09, 1e-12);
  EXPECT_DOUBLE_EQ(recorded(result_of(exactly(2, 0.5))).ratio.tolerance, 0.20);
}

TEST_F(ExpectationsTest, record_only_what_was_measured_with_default_knobs) {
  Expectations expectations = loaded();
  const auto left_out = [&](Result result) {
    expectations.record(result, "run-1", "abc", 1);
    return expectations.empty();
  };
  Result swept = result_of(exactly(2));
  swept.sweep_key = "n";
  EXPECT_TRUE(left_out(swept));
  Result wrong = result_of(exactly(2));
  wrong.status = Status::wrong;
  EXPECT_TRUE(left_out(wrong));
  Result skipped{.id = "ch07:twice", .status = Status::skipped};
  EXPECT_TRUE(left_out(skipped));
  EXPECT_FALSE(left_out(result_of(exactly(2))));
}

TEST_F(ExpectationsTest, replace_what_was_recorded_before) {
  Expectations expectations = loaded();
  expectations.record(result_of(exactly(2)), "run-1", "abc", 1);
  Result slower = result_of(exactly(1.5));
  slower.status = Status::regressed;
  expectations.record(slower, "run-2", "def", 2);
  ASSERT_EQ(expectations.entries().size(), 1u);
  const Expectation& now = expectations.entries().begin()->second;
  EXPECT_EQ(now.ratio.median, 1.5);
  EXPECT_EQ(now.run_id, "run-2");
}

TEST_F(ExpectationsTest, apply_to_the_same_knobs_and_backend_alone) {
  Expectations expectations = loaded();
  expectations.record(result_of(exactly(2)), "run-1", "abc", 1);
  EXPECT_NE(expectations.find(result_of(exactly(9))), nullptr);
  Result larger = result_of(exactly(2));
  larger.knobs["n"] = 1000;
  EXPECT_EQ(expectations.find(larger), nullptr);
  EXPECT_EQ(expectations.find(result_of(exactly(2), 1000, BackendKind::cpu)), nullptr);
}

/// Expected: a speedup of 2 within 3%, 2000 ns and 1000 ns.
class CompareWith : public ExpectationsTest {
 protected:
  Comparison compare(const Result& result) const {
    return compare_with(recorded(result_of(exactly(2))), result);
  }
};

TEST_F(CompareWith, is_as_expected_within_the_tolerance) {
  for (double speedup : {1.95, 2.0, 2.05}) {
    EXPECT_EQ(compare(result_of(exactly(speedup), 1000)).verdict, Verdict::as_expected) << speedup;
  }
}

TEST_F(CompareWith, regresses_when_the_whole_interval_is_below) {
  const Comparison comparison = compare(result_of(exactly(1.9)));
  EXPECT_EQ(comparison.verdict, Verdict::regressed);
  EXPECT_THAT(comparison.reason,
              HasSubstr("speedup 1.900 [1.900, 1.900] fell below the expected 2.000"));
  EXPECT_THAT(comparison.reason, HasSubstr("of run run-1"));
  EXPECT_EQ(compare(result_of(exactly(1.9, 0.05))).verdict, Verdict::as_expected)
      << "the interval still reaches";
}

TEST_F(CompareWith, is_better_when_the_whole_interval_is_above) {
  const Comparison comparison = compare(result_of(exactly(2.1), 900));
  EXPECT_EQ(comparison.verdict, Verdict::better);
  EXPECT_THAT(comparison.reason, HasSubstr("--update-expectations"));
  EXPECT_EQ(compare(result_of(exactly(2.1, 0.05), 900)).verdict, Verdict::as_expected);
}

TEST_F(CompareWith, regresses_when_both_sides_got_slower_alike) {
  const Comparison comparison = compare(result_of(exactly(2), 1100));
  EXPECT_EQ(comparison.verdict, Verdict::regressed);
  EXPECT_THAT(comparison.reason, HasSubstr("optimized takes 1.1 µs, expected 1.0 µs (+3%)"));
}

TEST_F(CompareWith, regresses_when_the_baseline_alone_got_slower) {
  Result result = result_of(exactly(2));
  result.baseline->ns = exactly(2100);
  const Comparison comparison = compare(result);
  EXPECT_EQ(comparison.verdict, Verdict::regressed);
  EXPECT_THAT(comparison.reason, HasSubstr("baseline takes"));
}

TEST_F(CompareWith, looks_at_times_on_a_gpu_only) {
  const Expectation expectation = recorded(result_of(exactly(2), 1000, BackendKind::cpu));
  EXPECT_EQ(compare_with(expectation, result_of(exactly(2), 5000, BackendKind::cpu)).verdict,
            Verdict::as_expected);
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

}  // namespace
}  // namespace gauntlet::lab::inline records
