// Do items become the step they say, and rows the results they belong to, however many steps are in
// flight and however much of a draft is refused?
#include "engine/steps/pooled_executor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "engine/steps/fake_runner.h"

namespace gauntlet::engine::inline steps {
namespace {

constexpr KvPoolConfig kPool{.page_tokens = 4, .window = 8, .full_pages = 64, .sliding_pages = 64};

model::ModelConfig config_of_fake() {
  model::ModelConfig config;
  config.vocab = 100;
  config.max_positions = 200;
  config.sliding_window = 8;
  return config;
}

class PooledExecutorTest : public testing::Test {
 protected:
  PooledExecutorTest() {
    auto made = std::make_unique<FakeRunner>(
        config_of_fake(),
        StepLimits{.tokens = 32, .items = 8, .page_tokens = 4, .experts_per_token = 2}, 2);
    runner_ = made.get();
    executor_ = std::make_unique<PooledExecutor>(kPool, std::move(made));
  }
  SequenceId sequence_of(const std::vector<std::int32_t>& prompt) {
    const SequenceId sequence = executor_->kv().create();
    reserve(sequence, std::ssize(prompt));
    executor_->collect(executor_->submit({{.sequence = sequence, .tokens = prompt}}));
    return sequence;
  }
  void reserve(SequenceId sequence, std::int64_t count) {
    ASSERT_TRUE(executor_->kv().reserve(sequence, count));
  }

  FakeRunner* runner_ = nullptr;
  std::unique_ptr<PooledExecutor> executor_;
};

TEST_F(PooledExecutorTest, keeps_positions_apart_while_two_steps_are_in_flight) {
  const SequenceId sequence = sequence_of({5, 6, 7});
  reserve(sequence, 1);
  const Ticket first = executor_->submit({{.sequence = sequence, .tokens = {8}}});
  reserve(sequence, 1);
  const Ticket second = executor_->submit({{.sequence = sequence, .tokens = {late_token(0)}}});
  EXPECT_EQ(executor_->kv().length(sequence), 3) << "nothing is committed before it is collected";
  EXPECT_EQ(executor_->collect(first)[0].token, 9);
  EXPECT_EQ(executor_->kv().length(sequence), 4);
  EXPECT_EQ(executor_->collect(second)[0].token, 10);
  EXPECT_EQ(executor_->kv().length(sequence), 5);
  EXPECT_EQ(runner_->most_seen_in_flight, 2);
  EXPECT_EQ(runner_->steps.back().tokens[0].position, 4);
  EXPECT_EQ(executor_->kv().check_integrity(), "");
}

TEST_F(PooledExecutorTest, commits_nothing_that_fewer_experts_computed) {
  const SequenceId sequence = sequence_of({5});
  reserve(sequence, 2);
  const auto submit = [&](std::int64_t num_drafts, int experts) {
    return executor_->submit({{.sequence = sequence,
                               .tokens = {6},
                               .num_drafts = num_drafts,
                               .experts_per_token = experts}});
  };
  EXPECT_ANY_THROW(submit(0, 1));
  EXPECT_ANY_THROW(submit(1, 5)) << "the backend takes two at most";
  EXPECT_EQ(executor_->collect(submit(1, 2))[0].token, 7);
  EXPECT_EQ(runner_->steps.back().experts_per_token, 2);
  EXPECT_EQ(executor_->kv().length(sequence), 1);
  EXPECT_EQ(executor_->collect(submit(0, 0))[0].token, 7);
  EXPECT_EQ(runner_->steps.back().experts_per_token, 0);
  EXPECT_EQ(runner_->steps.back().tokens[0].slot, 1) << "where the guess was";
  EXPECT_EQ(runner_->approximations_seen, 0);
  executor_->collect(submit(1, 2));
  executor_->kv().commit(sequence, 1);  // as nobody may
  reserve(sequence, 1);
  executor_->collect(submit(0, 0));
  EXPECT_GT(runner_->approximations_seen, 0) << "what would be seen of it";
}

TEST_F(PooledExecutorTest, refuses_a_third_step_and_a_collect_out_of_order) {
  const SequenceId sequence = sequence_of({5});
  reserve(sequence, 3);
  executor_->submit({{.sequence = sequence, .tokens = {6}}});
  const Ticket second = executor_->submit({{.sequence = sequence, .tokens = {7}}});
  EXPECT_ANY_THROW(executor_->submit({{.sequence = sequence, .tokens = {8}}}));
  EXPECT_ANY_THROW(executor_->collect(second));
}

TEST_F(PooledExecutorTest, gives_each_wanted_row_its_own_result) {
  const SequenceId sequence = sequence_of({5});
  reserve(sequence, 4);
  BatchItem item{.sequence = sequence, .tokens = {10, 20, 30, 40}, .num_drafts = 3};
  item.role = ItemRole::decode;
  std::vector<std::uint32_t> only_77(4, 0);
  only_77[77 / 32] = 1u << (77 % 32);
  item.rows = {{.token = 0, .sampling = {.seed = 1, .step = 7}},
               {.token = 1, .allowed = only_77},
               {.token = 2, .sampling = {.seed = 1, .step = 9}}};
  const auto result = executor_->collect(executor_->submit({item}))[0];
  ASSERT_EQ(result.rows.size(), 3u);
  EXPECT_EQ(result.rows[0].token, 11);
  EXPECT_EQ(result.rows[1].token, 77) << "the mask is this row's alone";
  EXPECT_EQ(result.rows[2].token, 31);
  EXPECT_EQ(result.token, 41);
  const StepData& step = runner_->steps.back();
  EXPECT_EQ(step.rows[0].sampling.step, 7);
  EXPECT_EQ(step.rows[2].sampling.step, 9);
  EXPECT_EQ(step.items[0].role, ItemRole::decode);
}

TEST_F(PooledExecutorTest, commits_nothing_of_a_draft_that_is_refused) {
  const SequenceId sequence = sequence_of({5});
  reserve(sequence, 4);
  BatchItem item{.sequence = sequence, .tokens = {6, 7, 50, 51}, .num_drafts = 3};
  item.rows = {{.token = 0}, {.token = 1}, {.token = 2}};
  executor_->collect(executor_->submit({item}));
  EXPECT_EQ(executor_->kv().length(sequence), 2) << "the known token alone";
  executor_->kv().commit(sequence, 1);  // 7 was what follows 6; 50 was not what follows 7
  reserve(sequence, 1);
  const auto result =
      executor_->collect(executor_->submit({{.sequence = sequence, .tokens = {8}}}))[0];
  EXPECT_EQ(result.token, 9) << "a refused guess is seen";
  EXPECT_EQ(runner_->steps.back().tokens[0].slot, 3) << "its place is written again";
}

TEST_F(PooledExecutorTest, computes_a_tree_and_brings_a_path_together) {
  const SequenceId sequence = sequence_of({5, 6});
  reserve(sequence, 6);
  //  7 - 8 - 9
  //    |   ` 20
  //    ` 30 - 31
  BatchItem item{.sequence = sequence,
                 .tokens = {7, 30, 8, 31, 20, 9},
                 .num_drafts = 5,
                 .parents = {-1, -1, 0, 1, 1},
                 .role = ItemRole::decode};
  for (std::int64_t t = 0; t < 5; ++t) item.rows.push_back({.token = t});
  const auto results = executor_->collect(executor_->submit({item}))[0];
  const StepData& step = runner_->steps.back();
  EXPECT_EQ(step.ancestors,
            (std::vector<std::uint64_t>{0b1, 0b11, 0b101, 0b1011, 0b10101, 0b100101}));
  const std::int32_t positions[] = {2, 3, 3, 4, 4, 4};
  for (std::int32_t t = 0; t < 6; ++t) {
    EXPECT_EQ(step.tokens[static_cast<std::size_t>(t)].position, positions[t]);
    EXPECT_EQ(step.tokens[static_cast<std::size_t>(t)].slot, 2 + t);
  }
  const std::int32_t drawn[] = {8, 31, 9, 32, 21};
  for (std::size_t r = 0; r < 5; ++r) EXPECT_EQ(results.rows[r].token, drawn[r]);
  EXPECT_EQ(results.token, 10);
  KvPool& pool = executor_->kv();
  EXPECT_EQ(pool.length(sequence), 3);
  EXPECT_ANY_THROW(pool.bring_together(sequence, std::vector<std::int64_t>{7, 4}));
  EXPECT_ANY_THROW(pool.bring_together(sequence, std::vector<std::int64_t>{9}));
  EXPECT_ANY_THROW(pool.bring_together(sequence, std::vector<std::int64_t>{2}));
  pool.bring_together(sequence, std::vector<std::int64_t>{4, 7});  // 8 and 9
  pool.commit(sequence, 2);
  pool.trim(sequence);
  reserve(sequence, 1);
  runner_->next = [](const FakeRunner::History& history) {
    return history == FakeRunner::History{5, 6, 7, 8, 9, 10} ? 11 : 66;
  };
  EXPECT_EQ(
      executor_->collect(executor_->submit({{.sequence = sequence, .tokens = {10}}}))[0].token, 11);
  EXPECT_EQ(runner_->steps.back().moves.size(), 4u) << "two positions in each group";
}

TEST_F(PooledExecutorTest, makes_moves_with_the_next_step_that_can_be_submitted) {
  const SequenceId sequence = sequence_of({5});
  reserve(sequence, 3);
  executor_->collect(executor_->submit({{.sequence = sequence,
                                         .tokens = {6, 50, 7},
                                         .num_drafts = 2,
                                         .parents = {-1, -1},
                                         .role = ItemRole::decode}}));
  executor_->kv().bring_together(sequence, std::vector<std::int64_t>{3});
  executor_->kv().commit(sequence, 1);
  reserve(sequence, 1);
  EXPECT_ANY_THROW(executor_->submit({{.sequence = sequence, .tokens = {1000}}}));
  runner_->next = [](const FakeRunner::History& history) {
    return history == FakeRunner::History{5, 6, 7, 8} ? 9 : 66;
  };
  EXPECT_EQ(executor_->collect(executor_->submit({{.sequence = sequence, .tokens = {8}}}))[0].token,
            9);
}

TEST_F(PooledExecutorTest, abandons_a_step_without_a_trace) {
  const SequenceId sequence = sequence_of({5});
  reserve(sequence, 1);
  const Ticket ticket = executor_->submit({{.sequence = sequence, .tokens = {6}}});
  executor_->abandon(ticket);
  EXPECT_EQ(executor_->kv().length(sequence), 1);
  EXPECT_EQ(executor_->kv().next_position(sequence), 1);
  EXPECT_EQ(executor_->collect(executor_->submit({{.sequence = sequence, .tokens = {9}}}))[0].token,
            10);
}

TEST_F(PooledExecutorTest, lets_the_next_step_come_after_one_that_failed) {
  const SequenceId sequence = sequence_of({5});
  reserve(sequence, 1);
  EXPECT_ANY_THROW(executor_->submit({{.sequence = sequence, .tokens = {1000}}}));
  EXPECT_ANY_THROW(executor_->submit({{.sequence = sequence, .tokens = {1, 2, 3, 4, 5, 6}}}))
      << "nothing is reserved for them";
  EXPECT_ANY_THROW(executor_->submit({{.sequence = sequence, .tokens = {late_token(0)}}}))
      << "no step is under way";
  runner_->before_finish = [](const StepData&) { throw std::runtime_error("broken"); };
  const Ticket ticket = executor_->submit({{.sequence = sequence, .tokens = {6}}});
  EXPECT_ANY_THROW(executor_->collect(ticket));
  runner_->before_finish = [](const StepData&) {};
  EXPECT_EQ(executor_->kv().next_position(sequence), 1);
  EXPECT_EQ(executor_->collect(executor_->submit({{.sequence = sequence, .tokens = {6}}}))[0].token,
            7);
}

TEST_F(PooledExecutorTest, scores_targets_beside_what_is_sampled) {
  const SequenceId sequence = executor_->kv().create();
  reserve(sequence, 3);
  const auto result = executor_->collect(
      executor_->submit({{.sequence = sequence, .tokens = {5, 6, 9}, .targets = {6, 8, 10}}}))[0];
  EXPECT_EQ(result.target_log_probs, (std::vector<double>{0, -1, 0}));
  EXPECT_EQ(result.token, 10);
}

TEST(StepData, refuses_what_no_backend_can_compute) {
  const StepLimits limits{.tokens = 4, .items = 2, .vocab = 10, .page_tokens = 4};
  const auto step = [] {
    StepData data;
    data.tokens = {{.id = 1, .position = 0, .slot = 0}};
    data.items = {{.first_token = 0, .num_tokens = 1}};
    data.table_stride = 1;
    for (auto& table : data.tables) table = {0};
    data.rows = {{.token = 0, .want = Want::token}};
    return data;
  };
  EXPECT_NO_THROW(check_step(step(), limits));
  const auto refused = [&](const std::function<void(StepData&)>& spoil) {
    StepData data = step();
    spoil(data);
    EXPECT_ANY_THROW(check_step(data, limits));
  };
  refused([](StepData& data) { data.items.clear(); });
  refused([](StepData& data) { data.tokens[0].id = 10; });
  refused([](StepData& data) { data.tokens[0].slot = 4; });
  refused([](StepData& data) { data.items[0].num_tokens = 2; });
  refused([](StepData& data) { data.tokens.push_back({}); });
  refused([](StepData& data) { data.tables[1].clear(); });
  refused([](StepData& data) { data.rows[0].token = 1; });
  refused([](StepData& data) { data.rows[0].mask = 0; });
  refused([](StepData& data) { data.rows[0].target = 10; });
  refused([](StepData& data) {
    data.masks = {{}};
    data.rows[0].mask = 0;
  });
}

TEST(StepData, refuses_a_tree_that_is_none) {
  StepLimits limits{.tokens = 70, .items = 2, .vocab = 10, .page_tokens = 4, .takes_trees = true};
  const auto step = [] {
    StepData data;
    data.tokens = {{1, 0, 0}, {2, 1, 1}, {3, 1, 2}, {4, 2, 3}};
    data.items = {{.first_token = 0, .num_tokens = 4}};
    data.table_stride = 20;
    for (auto& table : data.tables) table.resize(20);
    data.ancestors = {0b1, 0b11, 0b101, 0b1101};
    return data;
  };
  EXPECT_NO_THROW(check_step(step(), limits));
  const auto refused = [&](const std::function<void(StepData&)>& spoil) {
    StepData data = step();
    spoil(data);
    EXPECT_ANY_THROW(check_step(data, limits));
  };
  refused([](StepData& data) { data.ancestors.pop_back(); });
  refused([](StepData& data) { data.ancestors[3] = 0b1001; });  // is no deeper than its position
  refused([](StepData& data) { data.ancestors[3] = 0b1111; });  // sees two branches
  refused([](StepData& data) { data.ancestors[3] = 0b0101; });  // does not see itself
  refused([](StepData& data) { data.ancestors[1] = 0b111; });   // sees what comes later
  refused([](StepData& data) { data.tokens[3].position = 3; });
  refused([](StepData& data) { data.tokens[3].slot = 2; });
  refused([](StepData& data) {
    data.tokens.resize(65, {1, 0, 0});
    data.items[0].num_tokens = 65;
    data.ancestors.resize(65, 1);
  });
  limits.takes_trees = false;
  EXPECT_ANY_THROW(check_step(step(), limits));
  StepData moved = step();
  moved.ancestors.clear();
  EXPECT_NO_THROW(check_step(moved, limits));
  moved.moves = {{KvGroup::full, 0, 1, 0, 0}};
  EXPECT_ANY_THROW(check_step(moved, limits));
}

}  // namespace
}  // namespace gauntlet::engine::inline steps
