#include "lab/run/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lab/run/fake_evidence.h"

namespace gauntlet::lab::inline run {
namespace {

using testing::StartsWith;

class Metrics : public Judging {
 protected:
  void judge_by(Goal goal, Metric metric) {
    target_.pair.goal = goal;
    target_.pair.goal_metric = metric.name;
    target_.pair.metrics = {std::move(metric)};
  }
  /// Seconds of requests: `slow` of a hundred take ten times as long.
  void observe(std::size_t side, double seconds, int slow, std::uint64_t seed) {
    for (Measurement& m : evidence_.processes) {
      const Random random(seed++);
      auto& blocks = m.sides[side].distributions["latency_s"];
      blocks.assign(20, {});
      for (std::uint64_t i = 0; i < 4000; ++i) {
        const bool is_slow = random.below(100, i) < static_cast<std::uint64_t>(slow);
        blocks[i / 200].push_back(static_cast<float>(seconds * (is_slow ? 10 : 1)) *
                                  random.uniform(0.9f, 1.1f, 10000 + i));
      }
    }
  }
};

TEST_F(Metrics, come_from_facts_outcomes_rates_and_errors) {
  target_.pair.metrics = {
      {.name = "bytes_held", .unit = "B"},
      {.name = "hits", .unit = "%", .from = Metric::From::outcome},
      {.name = "tokens",
       .unit = "1/s",
       .from = Metric::From::rate,
       .amount = [](const Knobs& knobs) { return static_cast<double>(knobs["n"]); }},
      {.name = "error", .unit = "", .from = Metric::From::error},
      {.name = "unknown", .unit = "B"}};
  set_fact("bytes_held", {100, 40});
  set_outcome("hits", {20, 90});
  evidence_.processes[2].sides[1].error = 1e-3;
  const Result result = judged();
  const auto value = [&](const char* name, std::size_t side) {
    return result.metrics.at(name).sides.at(side).value;
  };
  EXPECT_EQ(value("bytes_held", 0), 100);
  EXPECT_EQ(value("bytes_held", 1), 40);
  EXPECT_EQ(result.metrics.at("bytes_held").unit, "B");
  EXPECT_EQ(value("hits", 1), 90);
  EXPECT_NEAR(value("tokens", 1), 500 / 2000e-9, 1);
  EXPECT_EQ(value("error", 0), 0);
  EXPECT_EQ(value("error", 1), 1e-3);
  EXPECT_FALSE(result.metrics.contains("unknown"));
}

TEST_F(Metrics, have_the_range_of_all_processes_for_an_interval) {
  target_.pair.metrics = {{.name = "joules", .unit = "J", .from = Metric::From::outcome}};
  for (std::size_t i = 0; i < 3; ++i) {
    evidence_.processes[i].sides[0].outcomes["joules"] = 10 + static_cast<double>(i);
  }
  const Result result = judged();
  const stats::Interval& first = result.metrics.at("joules").sides[0];
  EXPECT_EQ(first.value, 11);
  EXPECT_EQ(first.lo, 10);
  EXPECT_EQ(first.hi, 12);
  EXPECT_TRUE(std::isnan(result.metrics.at("joules").sides[1].value)) << "that side has none";
}

TEST_F(Metrics, judge_goals_other_than_speed) {
  judge_by(Goal::memory, {.name = "bytes_held", .unit = "B"});
  all_measure({1000, 1000});
  set_fact("bytes_held", {100, 40});
  EXPECT_EQ(judged().status, Status::passed);
  set_fact("bytes_held", {100, 99});
  EXPECT_THAT(judged().reason, StartsWith("bytes_held improves 1.010x [1.010, 1.010], which does "
                                          "not clear 1.02"));
  set_fact("bytes_held", {40, 100});
  EXPECT_EQ(judged().status, Status::no_gain);
  set_fact("bytes_held", {40, 0});
  EXPECT_EQ(judged().status, Status::passed);
  set_fact("bytes_held", {0, 0});
  EXPECT_EQ(judged().status, Status::no_gain);
}

TEST_F(Metrics, judge_by_the_interval_where_processes_differ) {
  judge_by(Goal::memory, {.name = "bytes_held", .unit = "B"});
  all_measure({1000, 1000});
  set_fact("bytes_held", {100, 90});
  EXPECT_EQ(judged().status, Status::passed);
  evidence_.processes[0].sides[1].facts["bytes_held"] = 140;
  const Result result = judged();
  EXPECT_EQ(result.metrics.at("bytes_held").sides[1].value, 90) << "the median is unmoved";
  EXPECT_EQ(result.status, Status::no_gain);
}

TEST_F(Metrics, that_no_side_reports_gain_nothing) {
  judge_by(Goal::memory, {.name = "bytes_held", .unit = "B"});
  EXPECT_EQ(judged().status, Status::no_gain);
  for (Measurement& m : evidence_.processes) m.sides[0].facts["bytes_held"] = 100;
  EXPECT_EQ(judged().status, Status::no_gain) << "nor where only one does";
}

TEST_F(Metrics, may_be_better_when_they_rise) {
  judge_by(Goal::accuracy, {.name = "hits", .unit = "%", .better = Metric::Better::higher});
  set_fact("hits", {40, 80});
  EXPECT_EQ(judged().status, Status::passed);
  set_fact("hits", {80, 40});
  EXPECT_EQ(judged().status, Status::no_gain);
  set_fact("hits", {0, 40});
  EXPECT_EQ(judged().status, Status::passed);
}

TEST_F(Metrics, are_not_bought_with_speed) {
  judge_by(Goal::memory, {.name = "bytes_held", .unit = "B"});
  all_measure({900, 1000});
  set_fact("bytes_held", {100, 40});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_EQ(result.reason, "bytes_held improves 2.50x, but at 0.90x the speed");
  all_measure({960, 1000});
  set_fact("bytes_held", {100, 40});
  EXPECT_EQ(judged().status, Status::passed);
}

TEST_F(Metrics, read_percentiles_of_what_sides_observed) {
  judge_by(Goal::tail_latency, {.name = "p99",
                                .unit = "s",
                                .from = Metric::From::percentile,
                                .percent = 99,
                                .distribution = "latency_s"});
  all_measure({1000, 1000});
  observe(0, 0.01, 4, 1);
  observe(1, 0.01, 0, 50);
  Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  const auto p99 = [&](std::size_t side) { return result.metrics.at("p99").sides.at(side); };
  EXPECT_NEAR(p99(0).value, 0.1, 0.01);
  EXPECT_NEAR(p99(1).value, 0.011, 0.0005);
  for (const std::size_t side : {0, 1}) {
    EXPECT_TRUE(p99(side).known());
    EXPECT_LE(p99(side).lo, p99(side).value);
    EXPECT_GE(p99(side).hi, p99(side).value);
    EXPECT_LT(p99(side).relative_half_width(), 0.1);
  }
  // Both sides alike: no gain, whatever the draw.
  observe(1, 0.01, 4, 50);
  result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
}

TEST_F(Metrics, know_no_percentile_of_nothing) {
  judge_by(Goal::tail_latency, {.name = "p99",
                                .unit = "s",
                                .from = Metric::From::percentile,
                                .percent = 99,
                                .distribution = "latency_s"});
  EXPECT_FALSE(judged().metrics.contains("p99"));
  EXPECT_EQ(judged().status, Status::no_gain);
}

TEST_F(Metrics, gain_nothing_by_a_percentile_without_an_interval) {
  judge_by(Goal::tail_latency, {.name = "p99",
                                .unit = "s",
                                .from = Metric::From::percentile,
                                .percent = 99,
                                .distribution = "latency_s"});
  all_measure({1000, 1000}, 1);
  auto& sides = evidence_.processes[0].sides;
  sides[0].distributions["latency_s"] = {{4, 4, 4}};
  sides[1].distributions["latency_s"] = {{1, 1, 1}};
  Result result = judged();
  EXPECT_EQ(result.status, Status::no_gain);
  EXPECT_EQ(result.reason, "p99 improves 4.000x, and one block is too little to know how surely");
  sides[0].distributions["latency_s"] = {{4, 4}, {4}};
  sides[1].distributions["latency_s"] = {{1, 1}, {1}};
  result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_EQ(result.headline().gain.value, 4);
  EXPECT_EQ(result.headline().verdict, stats::Gain::gain) << "not by its speed";
}

TEST_F(Metrics, judge_the_error_by_its_range_over_processes) {
  judge_by(Goal::accuracy, {.name = "error", .unit = "", .from = Metric::From::error});
  all_measure({1000, 1000});
  const auto set_errors = [&](std::size_t side, std::vector<double> errors) {
    for (std::size_t i = 0; i < errors.size(); ++i) {
      evidence_.processes[i].sides[side].error = errors[i];
    }
  };
  set_errors(0, {8e-4, 1e-3, 9e-4});
  set_errors(1, {1e-5, 2e-5, 1e-5});
  const Result result = judged();
  EXPECT_EQ(result.status, Status::passed) << result.reason;
  EXPECT_NEAR(result.headline().gain.value, 50, 1e-9);
  EXPECT_LT(result.headline().gain.lo, 50);
  set_errors(1, {1e-5, 9e-4, 1e-5});
  EXPECT_EQ(judged().status, Status::no_gain);
}

TEST_F(Metrics, find_exact_percentiles_of_few_values) {
  target_.pair.metrics = {{.name = "median",
                           .unit = "s",
                           .from = Metric::From::percentile,
                           .percent = 50,
                           .distribution = "d"},
                          {.name = "max",
                           .unit = "s",
                           .from = Metric::From::percentile,
                           .percent = 100,
                           .distribution = "d"}};
  all_measure({3000, 2000}, 1);
  evidence_.processes[0].sides[0].distributions["d"] = {{4, 1}, {3, 2}};
  evidence_.processes[0].sides[1].distributions["d"] = {{7}};
  const Result result = judged();
  EXPECT_DOUBLE_EQ(result.metrics.at("median").sides[0].value, 2.5);
  EXPECT_DOUBLE_EQ(result.metrics.at("max").sides[0].value, 4);
  EXPECT_DOUBLE_EQ(result.metrics.at("median").sides[1].value, 7);
}

}  // namespace
}  // namespace gauntlet::lab::inline run
