#include "lab/measure/rank_measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::lab::inline measure {
namespace {

using testing::ElementsAre;

Measurement of_rank(double error, double outcome, std::vector<float> seconds) {
  Measurement m;
  m.blocks = {{.ns = {{10, 10}}}};
  m.sides = {{.repetitions = 4,
              .error = error,
              .outcomes = {{"hits", outcome}},
              .distributions = {{"seconds", {std::move(seconds)}}}}};
  m.verification = {.max_error = error, .bound = 2 * error, .checks = 3, .timed_checks = 2};
  m.set_bytes = 100;
  m.sets = 5;
  return m;
}

TEST(MergeRanks, keeps_what_any_rank_found) {
  const Measurement merged = merge_ranks({of_rank(1e-7, 10, {1, 2}), of_rank(1e-5, 20, {3})});
  EXPECT_TRUE(merged.ok);
  EXPECT_EQ(merged.blocks.size(), 1u);
  EXPECT_EQ(merged.sides[0].repetitions, 4);
  EXPECT_EQ(merged.sides[0].error, 1e-5);
  EXPECT_EQ(merged.sides[0].outcomes.at("hits"), 15);
  EXPECT_THAT(merged.sides[0].distributions.at("seconds"), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_EQ(merged.verification.max_error, 1e-5);
  EXPECT_EQ(merged.verification.bound, 2e-5);
  EXPECT_EQ(merged.verification.checks, 6);
  EXPECT_EQ(merged.verification.timed_checks, 4);
  EXPECT_EQ(merged.set_bytes, 200);
  EXPECT_EQ(merged.sets, 5);
}

TEST(MergeRanks, averages_an_outcome_over_the_ranks_that_report_it) {
  Measurement silent = of_rank(0, 0, {});
  silent.sides[0].outcomes.clear();
  const Measurement merged = merge_ranks({silent, of_rank(0, 20, {}), of_rank(0, 40, {})});
  EXPECT_EQ(merged.sides[0].outcomes.at("hits"), 30);
}

TEST(MergeRanks, names_the_rank_that_found_something) {
  Measurement heard = of_rank(0, 0, {}), found = of_rank(0, 0, {});
  heard.ok = found.ok = false;
  heard.reason = std::string("optimized failed ") + kOnAnotherRank + " (before timing)";
  found.side = "optimized";
  found.reason = "optimized left part of its output unwritten (before timing)";
  const Measurement merged = merge_ranks({heard, of_rank(0, 0, {}), found});
  EXPECT_FALSE(merged.ok);
  EXPECT_EQ(merged.side, "optimized");
  EXPECT_EQ(merged.reason, "rank 2: " + found.reason);
  EXPECT_EQ(merge_ranks({heard}).reason, heard.reason);
  EXPECT_EQ(merge_ranks({found, found}).reason, found.reason) << "all of them saw it";
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
