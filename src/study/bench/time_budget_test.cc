// Does a study's time go to what matters most, and does its estimate learn?
#include "study/bench/time_budget.h"

#include <gtest/gtest.h>

#include <numeric>

namespace gauntlet::study::inline bench {
namespace {

std::vector<CellTime> cells() {
  return {{"verify", Rank::layers, 0, 2}, {"duel", Rank::layers, 3, 1},
          {"duel", Rank::company, 1, 1},  {"duel", Rank::company, 1, 1},
          {"point", Rank::sweeps, 1, 1},  {"long", Rank::sweeps, 0, 10}};
}

TEST(TimeBudgets, share_time_out_by_weight_where_there_is_no_end) {
  const TimeBudget budget(cells(), {.repeat_s = 60});
  EXPECT_DOUBLE_EQ(*budget.allot(0), 0);
  EXPECT_DOUBLE_EQ(*budget.allot(1), 30);
  EXPECT_DOUBLE_EQ(*budget.allot(4), 10);
  EXPECT_DOUBLE_EQ(budget.left_s(), 60 + 16);
}

TEST(TimeBudgets, learn_from_cells_of_a_kind_and_from_all_where_there_are_none) {
  TimeBudget budget(cells(), {.repeat_s = 60});
  budget.finish(0, 4);  // twice the guess
  EXPECT_DOUBLE_EQ(budget.left_s(), 60 + 2 * 14);
  budget.finish(1, 35);  // five beside its thirty, where one was guessed
  EXPECT_DOUBLE_EQ(budget.left_s(), 30 + 2 * 5 + 11 * 9.0 / 3);
}

TEST(TimeBudgets, leave_out_what_does_not_fit_but_never_a_layer) {
  TimeBudget budget(cells(), {.repeat_s = 60, .end_s = 50});
  budget.finish(0, 2);
  EXPECT_DOUBLE_EQ(*budget.allot(1), (48 - 3) * 3.0 / 5) << "the options get their part";
  budget.finish(1, 46);
  EXPECT_FALSE(budget.allot(2)) << "nineteen seconds of set-up, and two are left";
  TimeBudget late(cells(), {.repeat_s = 60, .end_s = 50});
  late.spend(100);
  EXPECT_GT(*late.allot(1), 0);
  EXPECT_FALSE(late.allot(4));
  EXPECT_DOUBLE_EQ(late.left_s(), 0);
}

TEST(TimeBudgets, shorten_repetitions_before_they_leave_a_cell_out) {
  TimeBudget budget(cells(), {.repeat_s = 60, .end_s = 44});
  budget.finish(0, 2);
  const double took = *budget.allot(1) + 1;
  budget.finish(1, took);
  const double left = 44 - 2 - took, setups = 2;  // of the two that come before the sweeps
  EXPECT_DOUBLE_EQ(*budget.allot(2), (left - setups) / 2);
}

TEST(TimeBudgets, end_in_time_when_cells_take_more_than_was_thought) {
  const std::vector<CellTime> many(40, CellTime{"point", Rank::sweeps, 1, 0.5});
  TimeBudget budget(many, {.repeat_s = 40, .end_s = 60});
  double passed = 0;
  int measured = 0;
  for (std::size_t i = 0; i < many.size(); ++i) {
    const auto seconds = budget.allot(i);
    if (!seconds) {
      budget.leave(i);
      continue;
    }
    budget.finish(i, *seconds + 2.5);
    passed += *seconds + 2.5;
    ++measured;
  }
  EXPECT_LE(passed, 60);
  EXPECT_GT(passed, 55);
  EXPECT_GT(measured, 15);
}

}  // namespace
}  // namespace gauntlet::study::inline bench
