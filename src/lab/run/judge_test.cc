#include "lab/run/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lab/run/fake_evidence.h"

namespace gauntlet::lab::inline run {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class Judge : public Judging {};

TEST(Describe, carries_what_the_pair_says) {
  Target target = twice_target();
  target.pair.goal = Goal::tail_latency;
  const Knobs knobs = Knobs::defaults(target.pair.knobs, BackendKind::cpu);
  const Result result = describe(target, BackendKind::cpu, knobs);
  EXPECT_EQ(result.id, "ch07:twice");
  EXPECT_EQ(result.chapter, "ch07");
  EXPECT_EQ(result.technique, "doubling");
  EXPECT_EQ(result.title, "slow → fast");
  EXPECT_EQ(result.claim, "Doubles on a CPU.");
  EXPECT_EQ(result.goal, "tail_latency");
  EXPECT_EQ(result.knobs, (std::map<std::string, std::int64_t>{{"n", 1000}}));
  EXPECT_EQ(result.status, Status::skipped);
}

TEST(Describe, calls_a_demonstration_so_on_the_backend_where_it_is_one) {
  Target target = twice_target();
  target.pair.cpu->kind = Kind::demonstration;
  const auto kind = [&](BackendKind backend) {
    return describe(target, backend, Knobs::defaults(target.pair.knobs, backend)).kind;
  };
  EXPECT_EQ(kind(BackendKind::cpu), "demonstration");
  EXPECT_EQ(kind(BackendKind::cuda), "comparison");
  EXPECT_EQ(kind(BackendKind::ranks), "comparison") << "of which nothing is declared";
}

TEST_F(Judge, passes_what_clears_the_bar) {
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  ASSERT_TRUE(result.measured());
  EXPECT_EQ(result.headline().kind, "pair");
  EXPECT_DOUBLE_EQ(result.headline().speedup.value, 1.5);
  EXPECT_EQ(result.headline().verdict, stats::Gain::gain);
  EXPECT_EQ(result.first().name, "baseline");
  EXPECT_EQ(result.first().role, "baseline");
  EXPECT_DOUBLE_EQ(result.first().ns.value, 3000);
  EXPECT_DOUBLE_EQ(result.best().ns.value, 2000);
  EXPECT_EQ(result.first().samples, 3 * 8 * 2);
  EXPECT_EQ(result.samples(), 3 * 8 * 4);
  // 500 elements, four bytes each way.
  EXPECT_DOUBLE_EQ(result.best().gb_per_s, 4000.0 / 2000);
  EXPECT_DOUBLE_EQ(result.best().gflop_per_s, 500.0 / 2000);
  EXPECT_EQ(result.verification.checks, 18);
  EXPECT_EQ(result.verification.timed_checks, 12);
  EXPECT_EQ(result.conditions.processes, 3);
  EXPECT_EQ(result.conditions.blocks, 24);
}

TEST_F(Judge, finds_no_gain_where_the_bar_is_not_cleared) {
  all_measure({1015, 1000});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_EQ(result.reason, "speedup 1.015 [1.015, 1.015] does not clear 1.02");
}

TEST_F(Judge, holds_a_pair_to_its_own_higher_bar) {
  target_.pair.bar = 1.5;
  EXPECT_EQ(judged().status, Status::no_gain);
  target_.pair.bar = 1.49;
  EXPECT_EQ(judged().status, Status::passed);
}

TEST_F(Judge, looks_at_the_interval_not_at_the_median) {
  evidence_.processes[0] = measured({2100, 2000});
  evidence_.processes[1] = measured({3000, 2000});
  evidence_.processes[2] = measured({2000, 2000});
  const Result result = judged();
  EXPECT_GT(result.headline().speedup.value, 1.02);
  EXPECT_EQ(result.status, Status::no_gain);
}

TEST_F(Judge, lets_every_process_weigh_the_same) {
  evidence_.processes[0] = measured({3000, 1000}, 400);
  evidence_.processes[1] = measured({2000, 1000}, 8);
  evidence_.processes[2] = measured({2000, 1000}, 8);
  EXPECT_DOUBLE_EQ(judged().headline().speedup.value, 2);
}

TEST_F(Judge, calls_it_wrong_when_one_process_found_it_so) {
  evidence_.processes[1].ok = false;
  evidence_.processes[1].reason = "optimized changed its input 'in' (before timing)";
  const Result result = judged();
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_EQ(result.reason, "optimized changed its input 'in' (before timing)");
  EXPECT_FALSE(result.measured());
  EXPECT_THAT(result.sides, IsEmpty());
}

TEST_F(Judge, calls_it_wrong_when_a_side_was_wrong_while_it_was_profiled) {
  evidence_.profile = ProfileOutcome{.wrong = "optimized gave a wrong result (profiled)"};
  const Result result = judged();
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_EQ(result.reason, "optimized gave a wrong result (profiled)");
  EXPECT_FALSE(result.measured());
}

TEST_F(Judge, leaves_out_a_process_whose_every_block_ran_hot) {
  evidence_.processes[1] = too_hot(2);
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(result.samples(), 2 * 8 * 4);
  EXPECT_EQ(result.conditions.dropped_blocks, 6);
}

TEST_F(Judge, takes_one_cool_process_of_three_for_no_result) {
  evidence_.processes[0] = too_hot(2);
  evidence_.processes[2] = too_hot(2);
  const Result result = judged();
  EXPECT_EQ(result.status, Status::skipped);
  EXPECT_EQ(result.reason, "only 1 of 3 processes found the GPU cool enough to measure");
  EXPECT_FALSE(result.measured());
}

TEST_F(Judge, takes_the_one_process_that_was_asked_for) {
  all_measure({3000, 2000}, 1);
  EXPECT_EQ(judged().status, Status::passed);
}

TEST_F(Judge, skips_when_every_process_ran_hot_throughout) {
  evidence_.processes.assign(3, too_hot(2));
  const Result result = judged();
  EXPECT_EQ(result.status, Status::skipped);
  EXPECT_THAT(result.reason, StartsWith("only 0 of 3 processes"));
}

TEST_F(Judge, does_not_excuse_what_is_wrong_by_heat) {
  EXPECT_TRUE(is_too_hot(too_hot(2)));
  Measurement wrong = measured({1, 1});
  wrong.ok = false;
  wrong.conditions.dropped_blocks = 3;
  EXPECT_FALSE(is_too_hot(wrong));
  wrong.blocks.clear();
  wrong.conditions.dropped_blocks = 0;
  EXPECT_FALSE(is_too_hot(wrong));
}

TEST_F(Judge, keeps_the_worst_verification_of_all_processes) {
  evidence_.processes[1].verification = {.max_error = 1e-7,
                                         .bound = 1e-6,
                                         .checks = 2,
                                         .timed_checks = 1,
                                         .recomputed_percent = 5,
                                         .seen_percent = 40};
  const VerificationResult v = judged().verification;
  EXPECT_EQ(v.max_error, 1e-7);
  EXPECT_EQ(v.bound, 1e-6);
  EXPECT_EQ(v.checks, 14);
  EXPECT_EQ(v.timed_checks, 9);
  EXPECT_EQ(v.recomputed_percent, 5);
  EXPECT_EQ(v.seen_percent, 40);
}

TEST_F(Judge, merges_the_conditions_of_all_processes) {
  evidence_.processes[0].conditions = {.blocks = 8,
                                       .dropped_blocks = 2,
                                       .sm_clock_mhz_min = 1900,
                                       .sm_clock_mhz_max = 1980,
                                       .power_w_max = 400,
                                       .temperature_c_max = 50,
                                       .throttle_reasons = {"power cap"}};
  evidence_.processes[1].conditions = {.blocks = 9,
                                       .dropped_blocks = 1,
                                       .sm_clock_mhz_min = 1800,
                                       .sm_clock_mhz_max = 1950,
                                       .power_w_max = 300,
                                       .temperature_c_max = 60,
                                       .throttle_reasons = {"power cap", "hw thermal"}};
  const Conditions c = judged().conditions;
  EXPECT_EQ(c.processes, 3);
  EXPECT_EQ(c.blocks, 25);
  EXPECT_EQ(c.dropped_blocks, 3);
  EXPECT_EQ(c.sm_clock_mhz_min, 1800) << "a process without sensors says nothing";
  EXPECT_EQ(c.sm_clock_mhz_max, 1980);
  EXPECT_EQ(c.power_w_max, 400);
  EXPECT_EQ(c.temperature_c_max, 60);
  EXPECT_THAT(c.throttle_reasons, ElementsAre("power cap", "hw thermal"));
}

/// A lab of three rungs, 1200, 400 and 200 ns, and a library of 150.
class JudgeLadder : public Judging {
 protected:
  JudgeLadder() {
    const TwiceFactory right = [](const TwiceParams& p) { return Side([p] { twice(p); }); };
    target_ = twice_ladder({right, right, right, right});
    const auto falls = [](const char* name) {
      return Witness::counter(name, Witness::Moves::falls, 2, "fewer of them");
    };
    cuda().rungs = {{.name = "tiled", .claim = "Tiles.", .witness = falls("sectors")},
                    {.name = "async", .claim = "Overlaps.", .witness = falls("stalls")}};
    all_measure({1200, 400, 200, 150});
  }
};

TEST_F(JudgeLadder, compares_steps_totals_and_the_yardstick) {
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  ASSERT_EQ(result.sides.size(), 4u);
  EXPECT_EQ(result.sides[3].role, "yardstick");
  EXPECT_TRUE(result.is_ladder());
  std::vector<std::string> all;
  for (const ComparisonResult& c : result.comparisons) all.push_back(c.from + ">" + c.to);
  EXPECT_THAT(all, ElementsAre("naive>tiled", "tiled>async", "naive>async", "library>async"));
  EXPECT_DOUBLE_EQ(result.comparisons[0].speedup.value, 3);
  EXPECT_DOUBLE_EQ(result.comparisons[1].speedup.value, 2);
  EXPECT_DOUBLE_EQ(result.comparisons[2].speedup.value, 6);
  EXPECT_DOUBLE_EQ(result.comparisons[3].speedup.value, 0.75);
  EXPECT_EQ(result.comparisons[3].verdict, stats::Gain::loss);
  EXPECT_EQ(&result.headline(), &result.comparisons[2]);
}

TEST_F(JudgeLadder, is_judged_by_the_last_rung_against_the_first) {
  all_measure({1200, 400, 1200, 150});
  EXPECT_EQ(judged().status, Status::no_gain);
  all_measure({1200, 1300, 200, 150});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << "a step back is a step, not the result";
  EXPECT_EQ(result.comparisons[0].verdict, stats::Gain::loss);
}

TEST_F(JudgeLadder, says_once_that_nobody_looked_for_the_witnesses) {
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed);
  EXPECT_THAT(result.notes, IsEmpty());
  EXPECT_EQ(unwitnessed(result),
            "mechanism not witnessed in naive → tiled: run with --profile minimal; in tiled → "
            "async: run with --profile minimal");
}

TEST_F(JudgeLadder, does_not_pass_by_a_step_whose_witness_did_not_move) {
  set_counter("sectors", {100, 10, 10, 10});
  set_counter("stalls", {100, 90, 80, 10});
  Result result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_TRUE(result.comparisons[0].witness.moved);
  EXPECT_FALSE(result.comparisons[1].witness.moved);
  EXPECT_EQ(result.comparisons[1].witness.before, 90);
  EXPECT_THAT(result.reason,
              StartsWith("async: the witness did not move: stalls went from 90 to 80"));
  set_counter("stalls", {100, 90, 10, 10});
  EXPECT_EQ(judged().status, Status::passed) << judged().reason;
  evidence_.profile->sides[1].counters.erase("sectors");
  EXPECT_EQ(judged().reason,
            "tiled: faster, but the mechanism could not be witnessed: the tiled side did not "
            "report sectors");
}

TEST_F(JudgeLadder, notes_the_witness_of_a_step_that_gained_nothing) {
  all_measure({1200, 200, 200, 150});
  set_counter("sectors", {100, 10, 10, 10});
  set_counter("stalls", {100, 90, 80, 10});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0],
              StartsWith("async: the witness did not move: stalls went from 90 to 80"));
}

TEST_F(JudgeLadder, keeps_the_counters_of_every_side) {
  set_counter("sectors", {100, 10, 10, 10});
  evidence_.profile->sides[2].counters.clear();
  const std::vector<double> sectors = judged().counters.at("sectors");
  ASSERT_EQ(sectors.size(), 4u);
  EXPECT_EQ(sectors[0], 100);
  EXPECT_TRUE(std::isnan(sectors[2]));
  EXPECT_EQ(sectors[3], 10);
}

}  // namespace
}  // namespace gauntlet::lab::inline run
