#include "lab/run/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline run {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// What one process measured: blocks whose times do not vary.
Measurement measured(double baseline_ns, double optimized_ns, int blocks = 8) {
  Measurement m;
  m.blocks.assign(static_cast<std::size_t>(blocks), {.baseline_ns = {baseline_ns, baseline_ns},
                                                     .optimized_ns = {optimized_ns, optimized_ns}});
  m.conditions.blocks = blocks;
  m.verification.checks = 6;
  return m;
}

class Judge : public testing::Test {
 protected:
  Judge() : target_(twice_target()) {
    for (int process = 0; process < 3; ++process)
      evidence_.processes.push_back(measured(3000, 2000));
  }

  Result judged(BackendKind backend = BackendKind::cuda) {
    const Knobs knobs = Knobs::defaults(target_.pair.knobs, backend);
    Result result = describe(target_, backend, knobs);
    judge(result, target_, knobs, evidence_);
    return result;
  }
  void all_measure(double baseline_ns, double optimized_ns) {
    for (Measurement& m : evidence_.processes) m = measured(baseline_ns, optimized_ns);
  }
  void set_fact(const std::string& name, double baseline, double optimized) {
    for (Measurement& m : evidence_.processes) {
      m.facts[kBaseline][name] = baseline;
      m.facts[kOptimized][name] = optimized;
    }
  }
  void set_counter(const std::string& name, double baseline, double optimized) {
    if (!evidence_.profile) evidence_.profile.emplace();
    evidence_.profile->counters[kBaseline][name] = baseline;
    evidence_.profile->counters[kOptimized][name] = optimized;
  }
  BackendFacts& cuda() { return *target_.pair.cuda; }

  Target target_;
  Evidence evidence_;
};

TEST(Describe, carries_what_the_pair_says) {
  Target target = twice_target();
  target.pair.kind = Kind::demonstration;
  target.pair.goal = Goal::tail_latency;
  const Knobs knobs = Knobs::defaults(target.pair.knobs, BackendKind::cpu);
  const Result result = describe(target, BackendKind::cpu, knobs);
  EXPECT_EQ(result.id, "ch07:twice");
  EXPECT_EQ(result.chapter, "ch07");
  EXPECT_EQ(result.technique, "doubling");
  EXPECT_EQ(result.title, "slow → fast");
  EXPECT_EQ(result.claim, "Doubles on a CPU.");
  EXPECT_EQ(result.kind, "demonstration");
  EXPECT_EQ(result.goal, "tail_latency");
  EXPECT_EQ(result.knobs, (std::map<std::string, std::int64_t>{{"n", 1000}}));
  EXPECT_EQ(result.status, Status::skipped);
}

TEST_F(Judge, passes_what_clears_the_bar) {
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_DOUBLE_EQ(result.speedup->median, 1.5);
  EXPECT_DOUBLE_EQ(result.baseline->ns.median, 3000);
  EXPECT_DOUBLE_EQ(result.optimized->ns.median, 2000);
  EXPECT_EQ(result.baseline->samples, 3 * 8 * 2);
  EXPECT_EQ(result.samples, 3 * 8 * 4);
  // 500 elements, four bytes each way.
  EXPECT_DOUBLE_EQ(result.optimized->gb_per_s, 4000.0 / 2000);
  EXPECT_DOUBLE_EQ(result.optimized->gflop_per_s, 500.0 / 2000);
  EXPECT_EQ(result.verification.checks, 18);
  EXPECT_EQ(result.conditions.processes, 3);
  EXPECT_EQ(result.conditions.blocks, 24);
}

TEST_F(Judge, finds_no_gain_where_the_bar_is_not_cleared) {
  all_measure(1015, 1000);
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
  evidence_.processes[0] = measured(2100, 2000);
  evidence_.processes[1] = measured(3000, 2000);
  evidence_.processes[2] = measured(2000, 2000);
  const Result result = judged();
  EXPECT_GT(result.speedup->median, 1.02);
  EXPECT_EQ(result.status, Status::no_gain);
}

TEST_F(Judge, calls_it_wrong_when_one_process_found_it_so) {
  evidence_.processes[1].ok = false;
  evidence_.processes[1].reason = "optimized changed its input 'in' (before timing)";
  const Result result = judged();
  EXPECT_EQ(result.status, Status::wrong);
  EXPECT_EQ(result.reason, "optimized changed its input 'in' (before timing)");
  EXPECT_FALSE(result.speedup);
}

TEST_F(Judge, leaves_out_a_process_whose_every_block_ran_hot) {
  evidence_.processes[1].ok = false;
  evidence_.processes[1].blocks.clear();
  evidence_.processes[1].conditions.dropped_blocks = 6;
  EXPECT_EQ(judged().status, Status::passed);
}

TEST_F(Judge, skips_when_every_process_ran_hot_throughout) {
  for (Measurement& m : evidence_.processes) {
    m.ok = false;
    m.blocks.clear();
    m.conditions.dropped_blocks = 6;
    m.reason = "all 6 blocks were dropped";
  }
  const Result result = judged();
  EXPECT_EQ(result.status, Status::skipped);
  EXPECT_EQ(result.reason, "all 6 blocks were dropped");
}

TEST_F(Judge, keeps_the_worst_verification_of_all_processes) {
  evidence_.processes[1].verification = {
      .max_error = 1e-7, .bound = 1e-6, .checks = 2, .checked_percent = 40};
  const VerificationResult v = judged().verification;
  EXPECT_EQ(v.max_error, 1e-7);
  EXPECT_EQ(v.bound, 1e-6);
  EXPECT_EQ(v.checks, 14);
  EXPECT_EQ(v.checked_percent, 40);
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
  EXPECT_EQ(c.throttle_reasons, (std::vector<std::string>{"power cap", "hw thermal"}));
}

TEST_F(Judge, does_not_pass_a_gain_whose_witness_did_not_move) {
  cuda().witness = Witness::fact("launches", Witness::Moves::falls, 4, "fewer launches");
  set_fact("launches", 100, 26);
  const Result result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_THAT(result.reason,
              StartsWith("the witness did not move: launches went from 100 to 26, but "
                         "falls by at least 4x was claimed"));
  set_fact("launches", 100, 25);
  EXPECT_EQ(judged().status, Status::passed);
  EXPECT_TRUE(judged().witness.moved);
}

TEST_F(Judge, reads_a_witness_that_rises) {
  cuda().witness = Witness::fact("occupancy", Witness::Moves::rises, 2, "more warps");
  set_fact("occupancy", 30, 61);
  EXPECT_TRUE(judged().witness.moved);
  set_fact("occupancy", 61, 30);
  EXPECT_FALSE(judged().witness.moved);
}

TEST_F(Judge, takes_a_fall_to_zero_for_any_factor_but_not_nothing_for_a_move) {
  cuda().witness = Witness::fact("conflicts", Witness::Moves::falls, 10, "no conflicts");
  set_fact("conflicts", 5, 0);
  EXPECT_TRUE(judged().witness.moved);
  set_fact("conflicts", 0, 0);
  EXPECT_FALSE(judged().witness.moved);
}

TEST_F(Judge, passes_without_a_witness_it_could_not_collect_and_says_why) {
  cuda().witness = Witness::counter("sectors", Witness::Moves::falls, 2, "fewer sectors");
  EXPECT_EQ(judged().witness.why_not, "run with --profile minimal");
  evidence_.profile = ProfileOutcome{.why_not = "no permission"};
  EXPECT_EQ(judged().witness.why_not, "no permission");
  evidence_.profile.reset();
  set_counter("other", 1, 1);
  EXPECT_EQ(judged().witness.why_not, "the baseline side did not report sectors");
  EXPECT_EQ(judged().status, Status::passed);
  EXPECT_FALSE(judged().witness.collected);
  cuda().witness = Witness::none("nothing shows it");
  EXPECT_EQ(judged().witness.why_not, "nothing shows it");
}

TEST_F(Judge, reads_a_counter_from_the_profile) {
  cuda().witness = Witness::counter("sectors", Witness::Moves::falls, 2, "fewer sectors");
  set_counter("sectors", 32, 4);
  const Result result = judged();
  EXPECT_TRUE(result.witness.collected);
  EXPECT_TRUE(result.witness.moved);
  EXPECT_EQ(result.witness.baseline, 32);
  EXPECT_EQ(result.witness.optimized, 4);
  EXPECT_EQ(result.witness.source, "counter");
  EXPECT_EQ(result.counters.at("sectors").optimized, 4);
}

TEST_F(Judge, computes_metrics_from_facts_rates_and_errors) {
  target_.pair.metrics = {
      {.name = "bytes_held", .unit = "B"},
      {.name = "tokens",
       .unit = "1/s",
       .from = Metric::From::rate,
       .amount = [](const Knobs& knobs) { return static_cast<double>(knobs["n"]); }},
      {.name = "error", .unit = "", .from = Metric::From::error},
      {.name = "unknown", .unit = "B"}};
  set_fact("bytes_held", 100, 40);
  evidence_.processes[2].side_error[kOptimized] = 1e-3;
  const Result result = judged();
  EXPECT_EQ(result.metrics.at("bytes_held").baseline, 100);
  EXPECT_EQ(result.metrics.at("bytes_held").optimized, 40);
  EXPECT_EQ(result.metrics.at("bytes_held").unit, "B");
  EXPECT_NEAR(result.metrics.at("tokens").optimized, 500 / 2000e-9, 1);
  EXPECT_EQ(result.metrics.at("error").baseline, 0);
  EXPECT_EQ(result.metrics.at("error").optimized, 1e-3);
  EXPECT_FALSE(result.metrics.contains("unknown"));
}

TEST_F(Judge, judges_other_goals_by_their_metric) {
  target_.pair.goal = Goal::memory;
  target_.pair.goal_metric = "bytes_held";
  target_.pair.metrics = {{.name = "bytes_held", .unit = "B"}};
  all_measure(1000, 1000);
  set_fact("bytes_held", 100, 40);
  EXPECT_EQ(judged().status, Status::passed);
  set_fact("bytes_held", 100, 99);
  EXPECT_THAT(judged().reason, StartsWith("bytes_held improves 1.010x, which does not clear"));
  set_fact("bytes_held", 40, 100);
  EXPECT_EQ(judged().status, Status::no_gain);
  set_fact("bytes_held", 40, 0);
  EXPECT_EQ(judged().status, Status::passed);
  set_fact("bytes_held", 0, 0);
  EXPECT_EQ(judged().status, Status::no_gain);
}

TEST_F(Judge, reads_a_goal_whose_metric_rises) {
  target_.pair.goal = Goal::accuracy;
  target_.pair.goal_metric = "hits";
  target_.pair.metrics = {{.name = "hits", .unit = "%", .better = Metric::Better::higher}};
  set_fact("hits", 40, 80);
  EXPECT_EQ(judged().status, Status::passed);
  set_fact("hits", 80, 40);
  EXPECT_EQ(judged().status, Status::no_gain);
}

TEST_F(Judge, does_not_let_another_goal_be_bought_with_speed) {
  target_.pair.goal = Goal::memory;
  target_.pair.goal_metric = "bytes_held";
  target_.pair.metrics = {{.name = "bytes_held", .unit = "B"}};
  all_measure(900, 1000);
  set_fact("bytes_held", 100, 40);
  const Result result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_EQ(result.reason, "bytes_held improves 2.50x, but at 0.90x the speed");
  all_measure(960, 1000);
  set_fact("bytes_held", 100, 40);
  EXPECT_EQ(judged().status, Status::passed);
}

TEST_F(Judge, notes_where_caches_held_the_declared_bytes_back) {
  set_counter("dram__bytes_read.sum", 2000, 500);
  set_counter("dram__bytes_write.sum", 2000, 500);
  evidence_.ceilings =
      Ceilings{.backend = BackendKind::cuda,
               .values = {{"dram_copy", {.value = 4}}, {"fma_f32", {.value = 1e9}}}};
  const Result result = judged();
  EXPECT_DOUBLE_EQ(result.metrics.at("dram_traffic").baseline, 1.0);
  EXPECT_DOUBLE_EQ(result.metrics.at("dram_traffic").optimized, 0.25);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0], StartsWith("DRAM moved only 0.25 of the declared bytes"));
}

TEST_F(Judge, says_nothing_of_traffic_that_fits_or_was_not_counted) {
  EXPECT_TRUE(judged().notes.empty());
  EXPECT_FALSE(judged().metrics.contains("dram_traffic"));
  set_counter("dram__bytes_read.sum", 2000, 1800);
  set_counter("dram__bytes_write.sum", 2000, 2000);
  EXPECT_TRUE(judged().notes.empty());
  cuda().cost = [](const Knobs&) { return Cost{.read_bytes = 1e9, .level = Cost::Level::cache}; };
  EXPECT_TRUE(judged().notes.empty());
}

TEST_F(Judge, places_both_sides_under_the_ceilings) {
  evidence_.ceilings =
      Ceilings{.backend = BackendKind::cuda,
               .values = {{"dram_copy", {.value = 4}}, {"fma_f32", {.value = 100}}}};
  const Result result = judged();
  // 4000 bytes at 4 GB/s take 1000 ns.
  EXPECT_NEAR(result.baseline->ceiling_percent, 100.0 / 3, 0.01);
  EXPECT_NEAR(result.optimized->ceiling_percent, 50, 0.01);
  EXPECT_EQ(result.ceiling_percent, result.optimized->ceiling_percent);
  EXPECT_EQ(result.bound_by, "memory");
  EXPECT_NEAR(result.intensity, 500.0 / 4000, 1e-9);
}

TEST_F(Judge, places_a_side_on_one_thread_unless_it_says_it_uses_more) {
  evidence_.ceilings = Ceilings{.values = {{"dram_copy", {.value = 8}},
                                           {"dram_copy_1t", {.value = 4}},
                                           {"fma_f32", {.value = 100}},
                                           {"fma_f32_1t", {.value = 50}}}};
  set_fact("threads", 1, 2);
  const Result result = judged(BackendKind::cpu);
  // 8000 bytes: 2000 ns on one thread, 1000 ns on all.
  EXPECT_NEAR(result.baseline->ceiling_percent, 100.0 * 2 / 3, 0.01);
  EXPECT_NEAR(result.optimized->ceiling_percent, 50, 0.01);
}

}  // namespace
}  // namespace gauntlet::lab::inline run
