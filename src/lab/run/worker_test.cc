#include "lab/run/worker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace gauntlet::lab::inline run {
namespace {

using nlohmann::json;

/// Through text, as the pipe carries it.
json piped(const json& message) { return json::parse(message.dump()); }

TEST(WorkerRequest, survives_the_way_to_the_worker) {
  const WorkerRequest sent{.task = WorkerRequest::Task::profile,
                           .target = "ch07:twice",
                           .backend = BackendKind::cuda,
                           .knobs = {{"rows", 64}, {"columns", std::int64_t{1} << 40}},
                           .options = {.budget_s = 1.5,
                                       .half_width = 0.01,
                                       .min_blocks = 9,
                                       .max_blocks = 90,
                                       .fixed_blocks = 5,
                                       .warmup_s = 0.25,
                                       .warmup_runs = 4,
                                       .cold = true,
                                       .checked_blocks = 3,
                                       .seed = 0xFFFFFFFFFFFFFFFFu},
                           .profile = ProfileLevel::deep_dive,
                           .trace_path = "a/b.json"};
  const WorkerRequest got = worker_request_from_json(piped(to_json(sent)));
  EXPECT_EQ(got.task, sent.task);
  EXPECT_EQ(got.target, sent.target);
  EXPECT_EQ(got.backend, sent.backend);
  EXPECT_EQ(got.knobs, sent.knobs);
  EXPECT_EQ(got.profile, sent.profile);
  EXPECT_EQ(got.trace_path, sent.trace_path);
  const MeasureOptions &a = got.options, &b = sent.options;
  EXPECT_EQ(a.budget_s, b.budget_s);
  EXPECT_EQ(a.half_width, b.half_width);
  EXPECT_EQ(a.min_blocks, b.min_blocks);
  EXPECT_EQ(a.max_blocks, b.max_blocks);
  EXPECT_EQ(a.fixed_blocks, b.fixed_blocks);
  EXPECT_EQ(a.warmup_s, b.warmup_s);
  EXPECT_EQ(a.warmup_runs, b.warmup_runs);
  EXPECT_EQ(a.cold, b.cold);
  EXPECT_EQ(a.checked_blocks, b.checked_blocks);
  EXPECT_EQ(a.seed, b.seed);
}

Measurement full_measurement() {
  Measurement m;
  m.ok = false;
  m.reason = "optimized wrong result";
  m.side = "optimized";
  m.blocks = {{.baseline_ns = {1, 2}, .optimized_ns = {3, 4.5}},
              {.baseline_ns = {5, 6}, .optimized_ns = {7, 8}}};
  m.repetitions[0] = 10;
  m.repetitions[1] = 20;
  m.verification = {.max_error = 1e-7, .bound = 1e-5, .checks = 12, .checked_percent = 50};
  m.side_error[0] = 1e-8;
  m.side_error[1] = 1e-7;
  m.facts[0] = {{"launches", 3}};
  m.facts[1] = {{"launches", 1}, {"registers", 32}};
  m.conditions = {.blocks = 2,
                  .dropped_blocks = 1,
                  .sm_clock_mhz_min = 1500,
                  .sm_clock_mhz_max = 1980,
                  .power_w_max = 500,
                  .temperature_c_max = 70,
                  .throttle_reasons = {"power cap"},
                  .cold = true};
  return m;
}

TEST(Measurement, survives_the_way_back) {
  const Measurement sent = full_measurement();
  const Measurement got = measurement_from_json(piped(to_json(sent)));
  EXPECT_EQ(got.ok, sent.ok);
  EXPECT_EQ(got.reason, sent.reason);
  EXPECT_EQ(got.side, sent.side);
  ASSERT_EQ(got.blocks.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    for (int half : {0, 1}) {
      EXPECT_EQ(got.blocks[i].baseline_ns[half], sent.blocks[i].baseline_ns[half]);
      EXPECT_EQ(got.blocks[i].optimized_ns[half], sent.blocks[i].optimized_ns[half]);
    }
  }
  for (int side : {0, 1}) {
    EXPECT_EQ(got.repetitions[side], sent.repetitions[side]);
    EXPECT_EQ(got.side_error[side], sent.side_error[side]);
    EXPECT_EQ(got.facts[side], sent.facts[side]);
  }
  EXPECT_EQ(got.verification.max_error, sent.verification.max_error);
  EXPECT_EQ(got.verification.bound, sent.verification.bound);
  EXPECT_EQ(got.verification.checks, sent.verification.checks);
  EXPECT_EQ(got.verification.checked_percent, sent.verification.checked_percent);
  EXPECT_EQ(got.conditions.blocks, sent.conditions.blocks);
  EXPECT_EQ(got.conditions.dropped_blocks, sent.conditions.dropped_blocks);
  EXPECT_EQ(got.conditions.sm_clock_mhz_min, sent.conditions.sm_clock_mhz_min);
  EXPECT_EQ(got.conditions.sm_clock_mhz_max, sent.conditions.sm_clock_mhz_max);
  EXPECT_EQ(got.conditions.power_w_max, sent.conditions.power_w_max);
  EXPECT_EQ(got.conditions.temperature_c_max, sent.conditions.temperature_c_max);
  EXPECT_EQ(got.conditions.throttle_reasons, sent.conditions.throttle_reasons);
  EXPECT_EQ(got.conditions.cold, sent.conditions.cold);
}

TEST(Measurement, keeps_an_infinite_error_infinite) {
  Measurement sent = full_measurement();
  sent.verification.max_error = INFINITY;
  sent.side_error[1] = INFINITY;
  const Measurement got = measurement_from_json(piped(to_json(sent)));
  EXPECT_EQ(got.verification.max_error, INFINITY);
  EXPECT_EQ(got.side_error[1], INFINITY);
  EXPECT_EQ(got.side_error[0], 1e-8);
}

TEST(Measurement, leaves_out_a_fact_that_is_not_a_number) {
  Measurement sent = full_measurement();
  sent.facts[1]["hit_rate"] = NAN;
  const Measurement got = measurement_from_json(piped(to_json(sent)));
  EXPECT_FALSE(got.facts[1].contains("hit_rate"));
  EXPECT_EQ(got.facts[1].at("registers"), 32);
}

TEST(ProfileOutcome, is_read_from_what_a_profiling_worker_sends) {
  const ProfileOutcome outcome = profile_outcome_from_json(
      json::parse(R"({"type": "profile", "baseline": {"sectors": 32}, "optimized": {"sectors": 4},
                      "baseline_facts": {"launches": 2}, "optimized_facts": {},
                      "why_not": "no permission", "trace_error": "disk full"})"));
  EXPECT_EQ(outcome.counters[kBaseline].at("sectors"), 32);
  EXPECT_EQ(outcome.counters[kOptimized].at("sectors"), 4);
  EXPECT_EQ(outcome.facts[kBaseline].at("launches"), 2);
  EXPECT_EQ(outcome.why_not, "no permission");
  EXPECT_EQ(outcome.trace_error, "disk full");
}

TEST(ProfileOutcome, leaves_out_a_counter_that_is_not_a_number) {
  const ProfileOutcome outcome = profile_outcome_from_json(
      json::parse(R"({"baseline": {"rate": null, "sectors": 1}, "optimized": {},
                      "baseline_facts": {}, "optimized_facts": {}, "why_not": "",
                      "trace_error": ""})"));
  EXPECT_FALSE(outcome.counters[kBaseline].contains("rate"));
  EXPECT_EQ(outcome.counters[kBaseline].at("sectors"), 1);
}

}  // namespace
}  // namespace gauntlet::lab::inline run
