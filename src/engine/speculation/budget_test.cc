// Is guessing never much worse than not, and used where it pays? Over a simulated clock.
#include "engine/speculation/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/random.h"

namespace gauntlet::engine::inline speculation {
namespace {

/// Someone of known acceptance, who guesses at a price.
struct Guesser {
  std::function<double(std::int64_t step)> acceptance;
  double draft_s = 0;  // of each guess
  double feed_s = -1;  // of each token in a step that it is shown; below 0: it is shown none
  double silence = 0;  // how often it has no guess
  TreeShape tree = {};
};

/// A machine on which a step's time is a function of its rows.
struct Machine {
  std::function<double(std::int64_t rows)> step_s;
  std::vector<Guesser> guessers;
  double noise = 0;  // of a step's time
  std::int64_t batch = 1;
};

struct Played {
  double seconds = 0;
  double plain_seconds = 0;  // that as many tokens take without guesses
  std::int64_t tokens = 0;
  std::vector<std::int64_t> drafted = {};  // by guesser
  std::int64_t fed_steps = 0;
  double saved() const { return plain_seconds / seconds; }
};

/// As a service does: each is asked in the order that the budget has, until one has guesses; who
/// must be shown what steps compute has none unless it was shown the step before.
Played play(const Machine& machine, std::int64_t steps, std::int64_t most = 7,
            std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<Feeding> feeding;
  for (const Guesser& guesser : machine.guessers) {
    feeding.push_back(guesser.feed_s >= 0 ? Feeding::residuals : Feeding::none);
  }
  std::vector<TreeShape> trees;
  for (const Guesser& guesser : machine.guessers) trees.push_back(guesser.tree);
  DraftBudget budget(DraftLengths::measured, most, feeding, trees);
  const auto chance = [&] { return static_cast<double>(random.next_below(1 << 20)) / (1 << 20); };
  Played played{.drafted = std::vector<std::int64_t>(feeding.size())};
  std::vector<bool> was_fed(feeding.size(), true);  // the prompt's steps
  for (std::int64_t s = 0; s < steps; ++s) {
    budget.begin_step(machine.batch);
    TimedStep step{.requests = machine.batch,
                   .rows = machine.batch,
                   .drafts = std::vector<TimedDrafts>(feeding.size())};
    for (std::int64_t id = 0; id < machine.batch; ++id) {
      std::int64_t right = 0;
      for (const auto& [d, length] : budget.picks(id)) {
        const Guesser& guesser = machine.guessers[d];
        EXPECT_LE(length, most);
        const bool has_none =
            (feeding[d] == Feeding::residuals && !was_fed[d]) || chance() < guesser.silence;
        TimedDrafts& timed = step.drafts[d];
        ++timed.requests;
        timed.longest = std::max(timed.longest, length);
        if (has_none) continue;
        const std::int64_t levels =
            std::min(guesser.tree.depth, (length + guesser.tree.width - 1) / guesser.tree.width);
        while (right < levels && chance() < guesser.acceptance(s)) ++right;
        budget.add(id, d, levels, right);
        step.rows += length;
        timed.seconds += guesser.draft_s * static_cast<double>(length);
        played.drafted[d] += length;
        break;
      }
      step.tokens += 1 + right;
    }
    step.seconds = machine.step_s(step.rows) * (1 + machine.noise * (2 * chance() - 1));
    for (std::size_t d = 0; d < feeding.size(); ++d) {
      was_fed[d] = budget.feeds(d);
      played.fed_steps += was_fed[d];
      if (was_fed[d]) {
        step.fed.push_back(d);
        step.feed_seconds += machine.guessers[d].feed_s * static_cast<double>(step.rows);
      }
      step.seconds += step.drafts[d].seconds;
    }
    step.seconds += step.feed_seconds;
    budget.add(step);
    played.seconds += step.seconds;
    played.tokens += step.tokens;
  }
  played.plain_seconds = machine.step_s(machine.batch) * static_cast<double>(played.tokens) /
                         static_cast<double>(machine.batch);
  return played;
}

std::function<double(std::int64_t)> always(double acceptance) {
  return [acceptance](std::int64_t) { return acceptance; };
}

double flat(std::int64_t rows) { return 1 + 0.05 * static_cast<double>(rows); }
double linear(std::int64_t rows) { return static_cast<double>(rows); }

TEST(DraftBudget, guesses_far_where_rows_are_cheap_and_guesses_right) {
  const Played played = play({.step_s = flat, .guessers = {{always(0.9)}}}, 400);
  EXPECT_GT(played.saved(), 3.0);
}

TEST(DraftBudget, guesses_little_where_guesses_are_often_wrong) {
  const Played often = play({.step_s = flat, .guessers = {{always(0.9)}}}, 400);
  const Played seldom = play({.step_s = flat, .guessers = {{always(0.3)}}}, 400);
  EXPECT_LT(seldom.drafted[0], often.drafted[0] / 2);
  EXPECT_GT(seldom.saved(), 1.1);
}

TEST(DraftBudget, is_never_two_percent_worse_than_none) {
  for (const double acceptance : {0.0, 0.2, 0.5, 0.8}) {
    for (const double draft_s : {0.0, 0.3}) {
      for (const double feed_s : {-1.0, 0.0, 0.03, 0.5}) {
        for (const std::int64_t batch : {1, 8, 64}) {
          for (const auto step_s : {linear, flat}) {
            for (const double noise : {0.0, 0.1}) {
              const Played played = play({.step_s = step_s,
                                          .guessers = {{always(acceptance), draft_s, feed_s}},
                                          .noise = noise,
                                          .batch = batch},
                                         1000);
              EXPECT_GT(played.saved(), 0.98)
                  << acceptance << ", " << draft_s << ", fed for " << feed_s << ", batch " << batch
                  << ", noise " << noise << (step_s == linear ? ", linear" : ", flat");
            }
          }
        }
      }
    }
  }
}

TEST(DraftBudget, is_never_two_percent_worse_with_several_drafters) {
  for (const double acceptance : {0.0, 0.2, 0.5, 0.8}) {
    for (const std::int64_t batch : {1, 8, 64}) {
      for (const auto step_s : {linear, flat}) {
        for (const double noise : {0.0, 0.1}) {
          const std::vector<Guesser> guessers = {{always(acceptance), 0, -1, 0.5},
                                                 {always(acceptance / 2), 0.3},
                                                 {always(0.8 - acceptance), 0.2, 0.03}};
          const Played played =
              play({.step_s = step_s, .guessers = guessers, .noise = noise, .batch = batch}, 1000);
          EXPECT_GT(played.saved(), 0.98) << acceptance << ", batch " << batch << ", noise "
                                          << noise << (step_s == linear ? ", linear" : ", flat");
        }
      }
    }
  }
}

TEST(DraftBudget, grows_a_tree_as_far_as_its_rows_pay) {
  const Guesser guesser{.acceptance = always(0.9), .tree = {.width = 3, .depth = 6}};
  const Played cheap = play({.step_s = flat, .guessers = {guesser}}, 400, 18);
  const Played dear = play({.step_s = linear, .guessers = {guesser}}, 1000, 18);
  EXPECT_GT(cheap.saved(), 1.9);
  EXPECT_GT(cheap.drafted[0], 400 * 12);
  EXPECT_LT(dear.drafted[0], 400);
  EXPECT_GT(dear.saved(), 0.98);
}

TEST(DraftBudget, is_never_two_percent_worse_than_none_with_trees) {
  for (const double acceptance : {0.0, 0.3, 0.8}) {
    for (const double draft_s : {0.0, 0.3}) {
      for (const double feed_s : {-1.0, 0.03}) {
        for (const std::int64_t batch : {1, 8}) {
          for (const auto step_s : {linear, flat}) {
            const Guesser guesser{.acceptance = always(acceptance),
                                  .draft_s = draft_s,
                                  .feed_s = feed_s,
                                  .tree = {.width = 4, .depth = 8}};
            const Played played = play(
                {.step_s = step_s, .guessers = {guesser}, .noise = 0.1, .batch = batch}, 1000, 32);
            EXPECT_GT(played.saved(), 0.98)
                << acceptance << ", " << draft_s << ", fed for " << feed_s << ", batch " << batch
                << (step_s == linear ? ", linear" : ", flat");
          }
        }
      }
    }
  }
}

TEST(DraftBudget, takes_the_cheapest_that_pays) {
  // Alike in what they say, the one that costs nothing; and the other where the first is silent.
  const Guesser free{always(0.8)}, dear{always(0.8), 0.1};
  const Played alike = play({.step_s = flat, .guessers = {dear, free}}, 400);
  EXPECT_GT(alike.drafted[1], 3 * alike.drafted[0]) << "once it was seen with all lengths";
  Guesser seldom = free;
  seldom.silence = 0.7;
  const Played both = play({.step_s = flat, .guessers = {dear, seldom}}, 400);
  const Played one = play({.step_s = flat, .guessers = {seldom}}, 400);
  EXPECT_GT(both.drafted[0], 200);
  EXPECT_GT(both.drafted[1], 100);
  EXPECT_GT(both.saved(), 1.2 * one.saved());
}

TEST(DraftBudget, takes_the_dearer_one_where_it_is_so_much_more_often_right) {
  const Played played =
      play({.step_s = flat, .guessers = {{always(0.2)}, {always(0.9), 0.05}}}, 800);
  EXPECT_GT(played.drafted[1], 3 * played.drafted[0]);
  EXPECT_GT(played.saved(), 2.0);
}

TEST(DraftBudget, shows_a_head_nothing_while_it_does_not_pay) {
  const Played idle = play({.step_s = linear, .guessers = {{always(0.3), 0.1, 0.05}}}, 2000);
  EXPECT_LT(idle.fed_steps, 200);
  const Played used = play({.step_s = flat, .guessers = {{always(0.8), 0.01, 0.01}}}, 2000);
  EXPECT_GT(used.fed_steps, 1800);
  EXPECT_GT(used.saved(), 2.0);
}

TEST(DraftBudget, tries_a_head_again_after_showing_it_some_steps) {
  const auto acceptance = [](std::int64_t step) { return step < 500 ? 0.0 : 0.9; };
  const Played played = play({.step_s = flat, .guessers = {{acceptance, 0.02, 0.02}}}, 2500);
  EXPECT_GT(played.saved(), 2.0);
}

TEST(DraftBudget, pays_for_what_a_prompt_costs_that_a_head_is_shown) {
  DraftBudget budget(DraftLengths::measured, 7, {Feeding::residuals});
  budget.begin_step(0);
  EXPECT_TRUE(budget.feeds(0)) << "nothing is known yet";
  budget.add({.seconds = 10, .feed_seconds = 5, .fed = {0}, .prompt_tokens = 100});
  EXPECT_LT(budget.credit_s(), -4.8);
  budget.begin_step(1);
  EXPECT_FALSE(budget.feeds(0)) << "this step tells what one costs without";
  budget.add({.requests = 1, .rows = 1, .tokens = 1, .seconds = 0.1});
  budget.begin_step(1);
  EXPECT_FALSE(budget.feeds(0)) << "it has cost more than it may";
  EXPECT_EQ(budget.length(1), 0);
}

TEST(DraftBudget, charges_guesses_beside_prompts) {
  DraftBudget budget(DraftLengths::measured, 7);
  for (int i = 0; i < 3; ++i) {
    budget.begin_step(1);
    budget.add({.requests = 1, .rows = 1, .tokens = 1, .seconds = 1});
  }
  const double before = budget.credit_s();
  budget.begin_step(1);
  budget.add({.requests = 1,
              .rows = 4,
              .tokens = 1,
              .seconds = 9,
              .drafts = {{.seconds = 2, .requests = 1, .longest = 3}},
              .prompt_tokens = 50});
  EXPECT_LT(budget.credit_s(), before - 2);
}

TEST(DraftBudget, comes_back_when_a_text_begins_to_repeat_itself) {
  const auto acceptance = [](std::int64_t step) { return step < 500 ? 0.0 : 0.95; };
  const Played played = play({.step_s = flat, .guessers = {{acceptance}}}, 1500);
  EXPECT_GT(played.saved(), 2.0);
}

TEST(DraftBudget, gives_up_when_a_text_is_no_longer_foreseen) {
  const auto acceptance = [](std::int64_t step) { return step < 500 ? 0.95 : 0.0; };
  const Played early = play({.step_s = linear, .guessers = {{acceptance}}}, 500);
  const Played both = play({.step_s = linear, .guessers = {{acceptance}}}, 3000);
  EXPECT_LT(both.drafted[0] - early.drafted[0], 200);
}

TEST(DraftBudget, tells_requests_apart) {
  DraftBudget budget(DraftLengths::measured, 7);
  for (int i = 0; i < 20; ++i) {
    budget.begin_step(2);
    const std::int64_t good = budget.length(1), bad = budget.length(2);
    budget.add(1, 0, good, good);
    budget.add(2, 0, bad, 0);
    const std::int64_t rows = 2 + good + bad;
    budget.add({.requests = 2,
                .rows = rows,
                .tokens = 2 + good,
                .seconds = 1 + 0.1 * static_cast<double>(rows),
                .drafts = {{.requests = 2, .longest = std::max(good, bad)}}});
  }
  while (budget.begin_step(2), budget.length(1) == 0) {
    budget.add({.requests = 2, .rows = 2, .tokens = 2, .seconds = 1.2});  // a plain one
  }
  EXPECT_EQ(budget.length(1), 7);
  EXPECT_LE(budget.length(2), 1);
}

TEST(DraftBudget, measures_steps_without_guesses_first) {
  DraftBudget budget(DraftLengths::measured, 7);
  for (const double seconds : {9.0, 2.0}) {
    budget.begin_step(4);
    EXPECT_EQ(budget.length(1), 0);
    budget.add({.requests = 4, .rows = 4, .tokens = 4, .seconds = seconds});
  }
  EXPECT_EQ(budget.cost_s(4), 2) << "the first of a process is slow";
  budget.begin_step(4);
  EXPECT_GT(budget.length(1), 0);
}

TEST(DraftBudget, asks_the_next_once_one_is_dropped) {
  for (const DraftLengths lengths : {DraftLengths::fixed, DraftLengths::measured}) {
    DraftBudget budget(lengths, 5, {Feeding::none, Feeding::none});
    for (int i = 0; i < 2; ++i) {
      budget.begin_step(1);
      budget.add({.requests = 1, .rows = 1, .tokens = 1, .seconds = 1});
    }
    budget.begin_step(1);
    EXPECT_EQ(budget.picks(1).size(), 2u);
    budget.drop(0);
    ASSERT_EQ(budget.picks(1).size(), 1u);
    EXPECT_EQ(budget.picks(1)[0].drafter, 1u);
  }
}

TEST(DraftBudget, asks_for_as_many_as_it_is_told_when_lengths_are_fixed) {
  DraftBudget budget(DraftLengths::fixed, 5);
  budget.begin_step(3);
  EXPECT_EQ(budget.length(1), 5);
}

}  // namespace
}  // namespace gauntlet::engine::inline speculation
