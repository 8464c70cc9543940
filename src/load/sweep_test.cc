#include "load/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gauntlet::load {
namespace {

/// A server that answers up to a capacity; beyond what it does well, ever fewer are good.
struct Model {
  double capacity = 20;
  double good_until = 14;
  std::vector<double> asked;

  PointResult at(double rate) {
    asked.push_back(rate);
    PointResult point{.num_requests = 1000, .offered_per_s = rate};
    point.requests_per_s.value = std::min(rate, capacity);
    point.steady = SteadyRates{.seconds = 100, .requests_per_s = point.requests_per_s};
    point.goodput_per_s.value = rate <= good_until ? rate : good_until * good_until / rate / 2;
    return point;
  }
  RunPoint runner() {
    return [this](double rate) { return Expected<PointResult>(at(rate)); };
  }
};

constexpr Slo kSlo{.ttft_s = 1};

TEST(Sweep, doubles_until_saturated_and_then_closes_in_on_the_best) {
  Model model;
  const auto result = sweep({.from = 1, .to = 1024}, kSlo, model.runner());
  ASSERT_TRUE(result);
  EXPECT_LT(std::ranges::max(model.asked), 100);
  EXPECT_TRUE(std::ranges::is_sorted(result->loads));
  EXPECT_NEAR(result->loads[result->best], 13.45, 0.1);  // 8 * 2^(3/4)
  EXPECT_TRUE(result->is_saturated);
  EXPECT_DOUBLE_EQ(result->capacity_per_s, 20);
  EXPECT_LE(*result->sustained, 22.3);
  EXPECT_GE(*result->sustained, 16);
}

TEST(Sweep, goes_by_answers_per_second_without_an_slo) {
  Model model;
  const auto result = sweep({.from = 1, .to = 1024}, {}, model.runner());
  ASSERT_TRUE(result);
  EXPECT_GE(result->loads[result->best], 20);
  EXPECT_LE(std::ranges::max(model.asked), 64);
}

TEST(Sweep, ends_at_the_end_of_its_range_where_nothing_saturates) {
  Model model{.capacity = 1e9, .good_until = 1e9};
  const auto result = sweep({.from = 3, .to = 20}, kSlo, model.runner());
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->loads.back(), 20);
  EXPECT_FALSE(result->is_saturated);
  EXPECT_EQ(result->best, result->loads.size() - 1);
  EXPECT_DOUBLE_EQ(*result->sustained, 20);
}

TEST(Sweep, of_concurrency_stops_where_more_brings_no_more) {
  std::vector<double> asked;
  const auto result =
      sweep({.key = SweepKey::concurrency, .from = 1, .to = 4096}, {}, [&](double load) {
        asked.push_back(load);
        PointResult point;
        point.requests_per_s.value = std::min(load, 10.0);
        return Expected<PointResult>(point);
      });
  ASSERT_TRUE(result);
  EXPECT_LE(std::ranges::max(asked), 64);
  for (const double load : asked) EXPECT_EQ(load, static_cast<int>(load));
  EXPECT_TRUE(result->is_saturated);
}

TEST(Sweep, is_not_fooled_by_chance_at_few_requests) {
  PointResult point{.offered_per_s = 2};
  point.steady = SteadyRates{.seconds = 10, .requests_per_s = {.value = 1.7}};
  EXPECT_FALSE(is_saturated(SweepKey::rate, point, nullptr));
  point.steady->seconds = 1000;
  EXPECT_TRUE(is_saturated(SweepKey::rate, point, nullptr));
}

TEST(Sweep, ends_with_an_error_or_an_interruption) {
  const auto failed = sweep({}, {}, [](double) { return Expected<PointResult>(Error{"gone"}); });
  EXPECT_FALSE(failed);
  int runs = 0;
  const auto cut = sweep({}, {}, [&](double) {
    PointResult point;
    point.is_interrupted = ++runs == 2;
    return Expected<PointResult>(point);
  });
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->points.size(), 2u);
}

TEST(SweepSpec, reads_ranges_and_refuses_others) {
  const auto spec = SweepSpec::parse("concurrency=2..64");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->key, SweepKey::concurrency);
  EXPECT_EQ(spec->to, 64);
  EXPECT_TRUE(SweepSpec::parse("rate=0.5..2.5"));
  for (const char* text : {"", "rate", "rate=", "rate=1", "rate=2..1", "rate=0..5", "load=1..2",
                           "concurrency=1.5..3", "rate=1..x", "rate=1..9e9"}) {
    EXPECT_FALSE(SweepSpec::parse(text)) << text;
  }
}

}  // namespace
}  // namespace gauntlet::load
