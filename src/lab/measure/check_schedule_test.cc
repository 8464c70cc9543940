#include "lab/measure/check_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gauntlet::lab::inline measure {
namespace {

constexpr CheckBudget kPlenty{
    .least_checks = 3, .least_traps = 2, .sure_samples = 16, .budget_s = 1, .time_share = 0.3};

/// How often a schedule says yes among many samples that take as long as told.
double share_checked(CheckBudget budget, double sample_s, double check_s, std::size_t sides = 2) {
  CheckSchedule schedule(budget, sides, 7);
  schedule.sample_took(sample_s);
  schedule.check_took(check_s);
  int yes = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) yes += schedule.draw_check(0);
  return double{1} * yes / kDraws;
}

TEST(CheckSchedule, checks_as_much_as_its_share_of_the_time_allows) {
  EXPECT_NEAR(share_checked(kPlenty, 1e-3, 3e-3), 0.1, 0.015);
  EXPECT_NEAR(share_checked(kPlenty, 1e-3, 1e-3), 0.3, 0.02);
}

TEST(CheckSchedule, checks_no_more_than_half_however_cheap_a_check_is) {
  EXPECT_NEAR(share_checked(kPlenty, 1e-3, 1e-9), 0.5, 0.02);
  EXPECT_NEAR(share_checked(kPlenty, 1e-3, 0), 0.5, 0.02);
}

/// How many of the first samples of a side are checked, over many schedules.
std::vector<int> checked_among(CheckBudget budget, double sample_s, int samples, int runs) {
  std::vector<int> counts;
  for (int run = 0; run < runs; ++run) {
    CheckSchedule schedule(budget, 2, static_cast<std::uint64_t>(run));
    schedule.check_took(1e3);  // as dear as can be
    int checks = 0;
    for (int i = 0; i < samples; ++i) {
      schedule.sample_took(sample_s);
      checks += schedule.draw_check(0);
    }
    counts.push_back(checks);
  }
  return counts;
}

TEST(CheckSchedule, has_the_least_within_the_samples_that_are_sure_to_come) {
  for (const int checks : checked_among(kPlenty, 1e-3, 16, 500)) EXPECT_GE(checks, 3);
  // Where the budget ends after three blocks, within those.
  for (const int checks : checked_among(kPlenty, 10, 6, 500)) EXPECT_GE(checks, 3);
  CheckBudget few = kPlenty;
  few.sure_samples = 2;
  for (const int checks : checked_among(few, 1e-3, 2, 20)) EXPECT_EQ(checks, 2);
}

TEST(CheckSchedule, goes_on_checking_when_the_least_are_done) {
  // 1 s of 1 ms samples of two sides are 500 of each: three more, on the average.
  int more = 0;
  for (const int checks : checked_among(kPlenty, 1e-3, 516, 200)) more += checks;
  EXPECT_NEAR(more / 200.0, 3 + 3, 1);
}

TEST(CheckSchedule, draws_every_sample_alike) {
  // Each of 40 samples, over many runs: no place in a run is safe. (The last of those that are sure
  // to come are checked more often where the least is not yet done.)
  CheckBudget budget = kPlenty;
  budget.least_checks = 0;
  constexpr int kRuns = 4000, kSamples = 40;
  std::vector<int> yes(kSamples);
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    CheckSchedule schedule(budget, 2, seed);
    schedule.check_took(1e-3);
    for (int i = 0; i < kSamples; ++i) {
      schedule.sample_took(1e-3);
      yes[static_cast<std::size_t>(i)] += schedule.draw_check(i % 2);
    }
  }
  const double expected = 0.3 * kRuns, deviation = std::sqrt(0.3 * 0.7 * kRuns);
  for (const int count : yes) EXPECT_NEAR(count, expected, 5 * deviation);
}

TEST(CheckSchedule, follows_what_samples_and_checks_really_take) {
  CheckSchedule schedule(kPlenty, 2, 3);
  const auto share = [&] {
    int yes = 0;
    for (int i = 0; i < 10000; ++i) yes += schedule.draw_check(0);
    return yes / 1e4;
  };
  schedule.sample_took(1e-3);
  schedule.check_took(1e-3);
  EXPECT_NEAR(share(), 0.3, 0.02);
  schedule.check_took(5e-3);
  EXPECT_NEAR(share(), 0.1, 0.015) << "the mean of both is 3 ms";
}

TEST(CheckSchedule, is_complete_when_each_side_has_the_least) {
  CheckSchedule schedule(kPlenty, 2, 5);
  schedule.hurry();
  EXPECT_FALSE(schedule.complete(0, false));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(schedule.draw_check(0));
  EXPECT_TRUE(schedule.complete(0, false));
  EXPECT_FALSE(schedule.complete(0, true));
  EXPECT_FALSE(schedule.complete(1, false));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(schedule.draw_trap(0));
    EXPECT_TRUE(schedule.draw_trap_check(0));
  }
  EXPECT_TRUE(schedule.complete(0, true));
}

TEST(CheckSchedule, counts_a_trap_when_it_was_checked) {
  CheckSchedule schedule(kPlenty, 1, 5);
  schedule.hurry();
  while (!schedule.complete(0, false)) schedule.draw_check(0);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(schedule.draw_trap(0));
  EXPECT_FALSE(schedule.complete(0, true));
}

TEST(CheckSchedule, hurries_no_further_than_to_the_least) {
  CheckSchedule schedule(kPlenty, 1, 5);
  schedule.sample_took(1e-3);
  schedule.check_took(3e-3);
  schedule.hurry();
  int checks = 0, traps = 0;
  for (int i = 0; i < 10000; ++i) {
    checks += schedule.draw_check(0);
    const bool trap = schedule.draw_trap(0);
    if (trap) schedule.draw_trap_check(0);
    traps += trap;
  }
  EXPECT_NEAR(checks, 1000, 150);
  EXPECT_NEAR(traps, 1000, 150);
}

TEST(CheckSchedule, sets_a_trap_after_one_sample_in_ten_once_it_has_the_least) {
  CheckBudget none = kPlenty;
  none.least_traps = 0;
  CheckSchedule schedule(none, 1, 11);
  int traps = 0;
  for (int i = 0; i < 20000; ++i) traps += schedule.draw_trap(0);
  EXPECT_NEAR(traps, 2000, 220);
}

TEST(CheckSchedule, asks_for_nothing_where_nothing_is_asked) {
  CheckSchedule schedule({.least_checks = 0, .least_traps = 0}, 1, 1);
  EXPECT_TRUE(schedule.complete(0, true));
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
