// Do two load tests side by side say what the one rule of comparison says?
#include "load/results/compare.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace gauntlet::load::inline results {
namespace {

stats::Interval within(double value, double part) {
  return {.value = value, .lo = value * (1 - part), .hi = value * (1 + part)};
}

LoadResult run_of(const PointResult& point) {
  LoadResult result;
  result.points.push_back(point);
  return result;
}

TEST(LoadCompare, judges_each_figure_by_the_interval_of_its_ratio) {
  PointResult a{.requests_per_s = within(10, 0.01),
                .output_tokens_per_s = within(100, 0.01),
                .ttft_s = {.mean = within(0.2, 0.01), .median = within(0.2, 0.2)}};
  PointResult b = a;
  b.output_tokens_per_s = within(150, 0.01);
  b.ttft_s.mean = within(0.1, 0.01);
  b.ttft_s.median = within(0.21, 0.2);
  const auto rows = compare(run_of(a), run_of(b));
  std::map<std::string, stats::Change> changes;
  for (const Comparison& row : rows) changes[row.figure] = row.change;
  EXPECT_EQ(changes.at("requests /s"), stats::Change::same);
  EXPECT_EQ(changes.at("output tok/s"), stats::Change::higher);
  EXPECT_EQ(changes.at("TTFT mean s"), stats::Change::lower);
  EXPECT_EQ(changes.at("TTFT median s"), stats::Change::unclear);
  EXPECT_EQ(changes.at("E2E p95 s"), stats::Change::unclear) << "neither has any";
}

TEST(LoadCompare, writes_ratio_and_change_of_each_row) {
  const PointResult a{.requests_per_s = within(10, 0.01)}, b{.requests_per_s = within(20, 0.01)};
  const auto rows = nlohmann::json::parse(json_text(compare(run_of(a), run_of(b))));
  const auto& row = rows.at(0);
  EXPECT_EQ(row.at("figure"), "requests /s");
  EXPECT_EQ(row.at("a"), nlohmann::json::parse(R"({"value": 10.0, "lo": 9.9, "hi": 10.1})"));
  EXPECT_EQ(row.at("ratio").at("value"), 2.0);
  EXPECT_GT(row.at("ratio").at("lo"), 1.9);
  EXPECT_EQ(row.at("change"), "higher");
  EXPECT_TRUE(rows.at(1).at("ratio").is_null()) << "no tokens, no ratio";
  EXPECT_EQ(rows.at(1).at("change"), "unclear");
}

}  // namespace
}  // namespace gauntlet::load::inline results
