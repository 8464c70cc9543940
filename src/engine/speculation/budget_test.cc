// Is guessing never much worse than not, and used where it pays? Over a simulated clock.
#include "engine/speculation/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/random.h"

namespace gauntlet::engine::inline speculation {
namespace {

/// A machine on which a step's time is a function of its rows, and a drafter of known acceptance.
struct Machine {
  std::function<double(std::int64_t rows)> step_s;
  std::function<double(std::int64_t step)> acceptance;
  double draft_s = 0;  // of each guess
  double noise = 0;    // of a step's time
  std::int64_t batch = 1;
};

struct Played {
  double seconds = 0;
  double plain_seconds = 0;  // that as many tokens take without guesses
  std::int64_t tokens = 0;
  std::int64_t drafted = 0;
  double saved() const { return plain_seconds / seconds; }
};

Played play(const Machine& machine, std::int64_t steps, std::int64_t most = 7,
            std::uint64_t seed = 1) {
  Random random(seed);
  DraftBudget budget(DraftLengths::measured, most);
  const auto chance = [&] { return static_cast<double>(random.next_below(1 << 20)) / (1 << 20); };
  Played played;
  for (std::int64_t s = 0; s < steps; ++s) {
    budget.begin_step(machine.batch);
    TimedStep step{.requests = machine.batch, .rows = machine.batch};
    for (std::int64_t id = 0; id < machine.batch; ++id) {
      const std::int64_t length = budget.length(id);
      EXPECT_LE(length, most);
      std::int64_t right = 0;
      while (right < length && chance() < machine.acceptance(s)) ++right;
      budget.add(id, length, right);
      step.rows += length;
      step.tokens += 1 + right;
      step.draft_seconds += machine.draft_s * static_cast<double>(length);
      step.longest_draft = std::max(step.longest_draft, length);
      played.drafted += length;
    }
    step.seconds =
        machine.step_s(step.rows) * (1 + machine.noise * (2 * chance() - 1)) + step.draft_seconds;
    budget.add(step);
    played.seconds += step.seconds;
    played.tokens += step.tokens;
  }
  played.plain_seconds = machine.step_s(machine.batch) * static_cast<double>(played.tokens) /
                         static_cast<double>(machine.batch);
  return played;
}

double flat(std::int64_t rows) { return 1 + 0.05 * static_cast<double>(rows); }
double linear(std::int64_t rows) { return static_cast<double>(rows); }

TEST(DraftBudget, guesses_far_where_rows_are_cheap_and_guesses_right) {
  const Played played = play({.step_s = flat, .acceptance = [](auto) { return 0.9; }}, 400);
  EXPECT_GT(played.saved(), 3.0);
}

TEST(DraftBudget, guesses_little_where_guesses_are_often_wrong) {
  const Played often = play({.step_s = flat, .acceptance = [](auto) { return 0.9; }}, 400);
  const Played seldom = play({.step_s = flat, .acceptance = [](auto) { return 0.3; }}, 400);
  EXPECT_LT(seldom.drafted, often.drafted / 2);
  EXPECT_GT(seldom.saved(), 1.1);
}

TEST(DraftBudget, is_never_two_percent_worse_than_none) {
  for (const double acceptance : {0.0, 0.2, 0.5, 0.8}) {
    for (const double draft_s : {0.0, 0.3}) {
      for (const std::int64_t batch : {1, 8, 64}) {
        for (const auto step_s : {linear, flat}) {
          for (const double noise : {0.0, 0.1}) {
            const Played played = play({.step_s = step_s,
                                        .acceptance = [&](auto) { return acceptance; },
                                        .draft_s = draft_s,
                                        .noise = noise,
                                        .batch = batch},
                                       1000);
            EXPECT_GT(played.saved(), 0.98)
                << acceptance << ", " << draft_s << ", batch " << batch << ", noise " << noise
                << (step_s == linear ? ", linear" : ", flat");
          }
        }
      }
    }
  }
}

TEST(DraftBudget, comes_back_when_a_text_begins_to_repeat_itself) {
  const auto acceptance = [](std::int64_t step) { return step < 500 ? 0.0 : 0.95; };
  const Played played = play({.step_s = flat, .acceptance = acceptance}, 1500);
  EXPECT_GT(played.saved(), 2.0);
}

TEST(DraftBudget, gives_up_when_a_text_is_no_longer_foreseen) {
  const auto acceptance = [](std::int64_t step) { return step < 500 ? 0.95 : 0.0; };
  const Played early = play({.step_s = linear, .acceptance = acceptance}, 500);
  const Played both = play({.step_s = linear, .acceptance = acceptance}, 3000);
  EXPECT_LT(both.drafted - early.drafted, 200);
}

TEST(DraftBudget, tells_requests_apart) {
  DraftBudget budget(DraftLengths::measured, 7);
  for (int i = 0; i < 20; ++i) {
    budget.begin_step(2);
    const std::int64_t good = budget.length(1), bad = budget.length(2);
    budget.add(1, good, good);
    budget.add(2, bad, 0);
    const std::int64_t rows = 2 + good + bad;
    budget.add({.requests = 2,
                .rows = rows,
                .tokens = 2 + good,
                .seconds = 1 + 0.1 * static_cast<double>(rows),
                .longest_draft = std::max(good, bad)});
  }
  budget.begin_step(2);
  EXPECT_EQ(budget.length(1), 7);
  EXPECT_LE(budget.length(2), 1);
}

TEST(DraftBudget, measures_a_step_without_guesses_first) {
  DraftBudget budget(DraftLengths::measured, 7);
  budget.begin_step(4);
  EXPECT_EQ(budget.length(1), 0);
  budget.add({.requests = 4, .rows = 4, .tokens = 4, .seconds = 2});
  EXPECT_EQ(budget.cost_s(4), 2);
  budget.begin_step(4);
  EXPECT_GT(budget.length(1), 0);
}

TEST(DraftBudget, asks_for_as_many_as_it_is_told_when_lengths_are_fixed) {
  DraftBudget budget(DraftLengths::fixed, 5);
  budget.begin_step(3);
  EXPECT_EQ(budget.length(1), 5);
}

}  // namespace
}  // namespace gauntlet::engine::inline speculation
