// Does each row get what it asked for, and is a step taken only when it can be?
#include "engine/cpu/runner.h"

#include <algorithm>
#include <cmath>

#include "engine/cpu/layers_cases.h"

namespace gauntlet::engine::cpu {
namespace {

constexpr std::int64_t kTokens = 100;

std::unique_ptr<Runner> small_runner(int threads) {
  auto pool = std::make_unique<ThreadPool>(
      std::vector<int>(static_cast<std::size_t>(threads), allowed_cpus()[0]));
  Plan plan = resolve({.threads = threads, .head = HeadKind::full}).value();
  auto model = std::move(pack_model(small_model(), plan, *pool, {}).value());
  return make_runner(
      {.plan = plan,
       .pool = {.page_tokens = 16, .window = 16, .full_pages = 8, .sliding_pages = 8},
       .max_tokens = kTokens,
       .threads = std::move(pool),
       .model = std::move(model)});
}

/// A prompt in the pages 0, 1, ... of both groups; every token has a row that wants `want`.
StepData step_of(const std::vector<std::int32_t>& ids, Want want) {
  StepData step;
  for (std::int32_t t = 0; t < std::ssize(ids); ++t) {
    step.tokens.push_back({.id = ids[static_cast<std::size_t>(t)], .position = t, .slot = t});
    step.rows.push_back({.token = t, .want = want});
  }
  step.items = {{.num_tokens = static_cast<std::int32_t>(std::ssize(ids))}};
  step.table_stride = (std::ssize(ids) + 15) / 16;
  for (auto& table : step.tables) {
    for (std::int32_t page = 0; page < step.table_stride; ++page) table.push_back(page);
  }
  return step;
}

std::vector<RowResult> run(Runner& runner, StepData step) {
  check_step(step, runner.limits());
  return runner.finish(runner.start(std::move(step)));
}

TEST(CpuRunner, gives_each_row_what_it_asked_for) {
  for (const int threads : {1, 3}) {
    const auto runner = small_runner(threads);
    const auto logits = run(*runner, step_of(small_ids(), Want::logits));
    ASSERT_EQ(logits.size(), 37u) << "more rows than are multiplied together";
    StepData asked = step_of(small_ids(), Want::nothing);
    asked.masks = {std::vector<std::uint32_t>(7, 0)};
    asked.masks[0][2] = 1u << 5 | 1u << 9;  // ids 69 and 73
    for (std::size_t r = 0; r < asked.rows.size(); ++r) {
      StepRow& row = asked.rows[r];
      if (r % 4 == 0) row.want = Want::token;
      if (r % 4 == 1) row.want = Want::log_probability;
      if (r % 4 == 2) row.want = Want::token, row.mask = 0;
      if (r % 4 == 3) row.target = 7;
    }
    const auto results = run(*runner, std::move(asked));
    for (std::size_t r = 0; r < results.size(); ++r) {
      const std::vector<float>& all = logits[r].logits;
      ASSERT_EQ(all.size(), 203u);
      const auto best = static_cast<std::int32_t>(std::ranges::max_element(all) - all.begin());
      double sum = 0;
      for (const float logit : all)
        sum += std::exp(double{logit} - all[static_cast<std::size_t>(best)]);
      const double normaliser = all[static_cast<std::size_t>(best)] + std::log(sum);
      EXPECT_TRUE(results[r].logits.empty());
      EXPECT_EQ(logits[r].token, best);
      if (r % 4 <= 1) {
        EXPECT_EQ(results[r].token, best);
      }
      if (r % 4 == 1) {
        EXPECT_NEAR(results[r].log_probability, all[static_cast<std::size_t>(best)] - normaliser,
                    1e-5);
      }
      if (r % 4 == 2) {
        EXPECT_EQ(results[r].token, all[69] >= all[73] ? 69 : 73);
      }
      if (r % 4 == 3) {
        EXPECT_EQ(results[r].token, -1);
        EXPECT_NEAR(results[r].target_log_probability, all[7] - normaliser, 1e-5);
      }
    }
  }
}

TEST(CpuRunner, keeps_position_and_slot_apart) {
  const auto runner = small_runner(2);
  const auto ids = small_ids();
  const auto whole = run(*runner, step_of({ids.begin(), ids.begin() + 5}, Want::logits));
  // A token that is stored nowhere sees those before it, and is not seen by the next step.
  StepData nowhere = step_of({ids.begin(), ids.begin() + 5}, Want::logits);
  nowhere.tokens[4].slot = -1;
  nowhere.rows.pop_back();
  const auto before = run(*runner, std::move(nowhere));
  for (std::size_t r = 0; r < before.size(); ++r) EXPECT_EQ(before[r].logits, whole[r].logits);
  // The last token alone, into its slot: the bits of the whole step.
  StepData last = step_of({ids[4]}, Want::logits);
  last.tokens[0].position = last.tokens[0].slot = last.items[0].context = 4;
  EXPECT_EQ(run(*runner, last)[0].logits, whole[4].logits);
  // The same keys at another position are other keys.
  last.tokens[0].position = 3;
  EXPECT_NE(run(*runner, last)[0].logits, whole[4].logits);
}

TEST(CpuRunner, takes_one_step_at_a_time_and_finishes_what_was_started) {
  const auto runner = small_runner(1);
  EXPECT_EQ(runner->most_in_flight(), 1);
  const Ticket ticket = runner->start(step_of({1, 2}, Want::token));
  EXPECT_ANY_THROW(runner->start(step_of({3}, Want::token)));
  EXPECT_ANY_THROW(runner->finish(ticket + 1));
  EXPECT_EQ(runner->finish(ticket).size(), 2u);
  EXPECT_ANY_THROW(runner->finish(ticket));
}

TEST(CpuRunner, counts_what_a_step_must_read) {
  const auto runner = small_runner(2);
  run(*runner, step_of({1}, Want::token));
  const StepTraffic one = runner->last_traffic();
  EXPECT_EQ(one.active_experts, 2 * 2) << "two of each layer's";
  EXPECT_EQ(one.exact_logits, 203);
  run(*runner, step_of(small_ids(), Want::nothing));
  const StepTraffic many = runner->last_traffic();
  EXPECT_GT(many.active_experts, one.active_experts);
  EXPECT_EQ(many.expert_bytes / many.active_experts, one.expert_bytes / one.active_experts);
  EXPECT_GT(many.kv_bytes, one.kv_bytes);
  std::int64_t tokens = 0;
  for (const std::int64_t count : runner->expert_tokens()) tokens += count;
  EXPECT_EQ(tokens, 2 * 2 * 38) << "of both steps";
}

}  // namespace
}  // namespace gauntlet::engine::cpu
