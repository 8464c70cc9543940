// Do duels take turns, for as long as they may, over the workloads they were given?
#include "study/bench/duel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/bench/decode_batch.h"
#include "study/bench/fake_bench.h"
#include "study/bench/sizes.h"
#include "study/fidelity/router.h"

namespace gauntlet::study::inline bench {
namespace {

using testing::HasSubstr;

struct Duels : testing::Test {
  FakeBench fake;
  engine::FakeExecutor other{fake.weights.config, 64};
  std::vector<Workload> workloads = {
      {"prompt", {.kind = engine::SpeedKind::prefill, .batch = 1, .tokens = 12}},
      {"decode_4", {.kind = engine::SpeedKind::decode, .batch = 4, .context = 3}}};

  Expected<Duel> fight(const DuelBudget& budget) {
    return duel(fake.bench, fake.executor, other, workloads, budget);
  }
};

TEST_F(Duels, take_at_least_so_many_turns) {
  const auto fought = fight({.seconds = 0, .least_blocks = 3});
  ASSERT_TRUE(fought) << fought.error().message;
  for (std::size_t i = 0; i < fought->bouts.size(); ++i) {
    EXPECT_EQ(fought->bouts[i].blocks.size(), 3u);
    EXPECT_EQ(fought->bouts[i].workload.name, workloads[i].name);
  }
  EXPECT_EQ(fought->bouts[0].workload.test.tokens, 12) << "a prompt keeps its length";
  EXPECT_EQ(fought->bouts[0].limits[0].bound_by, "") << "without ceilings no limit";
}

TEST_F(Duels, begin_with_either_side_by_chance_and_mirror_it) {
  workloads.pop_back();
  std::string turns;
  fake.executor.before_step = [&] { turns += 'a'; };
  other.before_step = [&] { turns += 'b'; };
  const auto fought = fight({.seconds = 0, .least_blocks = 40, .most_blocks = 40, .seed = 5});
  ASSERT_TRUE(fought) << fought.error().message;
  turns = turns.substr(2);  // the warm-up
  ASSERT_EQ(turns.size(), 4 * 40u) << "one step per sample";
  int mirrored = 0;
  for (std::size_t i = 0; i < turns.size(); i += 4) {
    const std::string block = turns.substr(i, 4);
    EXPECT_TRUE(block == "abba" || block == "baab") << block;
    mirrored += block == "baab";
  }
  EXPECT_GT(mirrored, 8);
  EXPECT_LT(mirrored, 32);
}

TEST_F(Duels, drop_a_round_of_a_hot_gpu_whole_and_count_it) {
  int block = 0;
  fake.sensors = [&] {
    // The second workload of the third round, and the first of the fifth, which ends there.
    const bool hot = ++block == 6 || block == 9;
    return std::optional(GpuState{.sm_clock_mhz = hot ? 900.0 : 1500.0, .thermal_slowdown = hot});
  };
  const auto fought = fight({.seconds = 0, .least_blocks = 6});
  ASSERT_TRUE(fought) << fought.error().message;
  EXPECT_EQ(block, 11);
  for (const Bout& bout : fought->bouts) EXPECT_EQ(bout.blocks.size(), 4u);
  ASSERT_TRUE(fought->conditions);
  EXPECT_EQ(fought->conditions->dropped_blocks, 2);
  EXPECT_EQ(fought->conditions->sm_clock_mhz_min, 900);
  EXPECT_EQ(fought->conditions->sm_clock_mhz_max, 1500);
}

TEST_F(Duels, say_so_when_a_hot_gpu_leaves_too_few_rounds) {
  fake.sensors = [] { return std::optional(GpuState{.thermal_slowdown = true}); };
  const auto fought = fight({.seconds = 0, .least_blocks = 5});
  ASSERT_FALSE(fought);
  EXPECT_THAT(fought.error().message, HasSubstr("5 blocks were dropped"));
  EXPECT_THAT(fought.error().message, HasSubstr("temperature"));
  EXPECT_EQ(fake.executor.kv().num_sequences(), 0);
}

TEST_F(Duels, end_when_they_are_cancelled_and_leave_nothing_behind) {
  fake.cancel = true;
  EXPECT_FALSE(fight({.seconds = 0}));
  EXPECT_EQ(fake.executor.kv().num_sequences(), 0);
  EXPECT_EQ(other.kv().num_sequences(), 0);
}

TEST_F(Duels, say_when_a_workload_does_not_fit) {
  workloads[1].test.context = 5000;
  const auto fought = fight({.seconds = 0});
  ASSERT_FALSE(fought);
  EXPECT_THAT(fought.error().message, HasSubstr("positions"));
}

TEST(Rooms, hold_contexts_and_their_forks) {
  const Room room = room_for(layer_workloads(Sizes{}));
  EXPECT_GE(room.sequences, 2 * 64);
  EXPECT_GE(room.longest, 128);
}

TEST(Rooms, shrink_with_the_sequences) {
  const Sizes sizes = sizes_for(Depth::quick, engine::Backend::cuda, {.max_positions = 4096}, 0);
  EXPECT_LT(study_room(halved(sizes)).sequences, study_room(sizes).sequences);
  EXPECT_LT(study_room(halved(sizes)).positions, study_room(sizes).positions);
}

TEST(Sizes, shrink_with_the_model_and_the_time) {
  const model::ModelConfig small{.max_positions = 100};
  const Sizes sizes = sizes_for(Depth::quick, engine::Backend::cpu, small, 0);
  EXPECT_LE(sizes.prompt_tokens, 50);
  EXPECT_LT(sizes.score_window, 100);
  const Sizes hurried = sizes_for(Depth::quick, engine::Backend::cpu, small, 2);
  EXPECT_LT(hurried.batches.size(), sizes.batches.size());
  EXPECT_EQ(hurried.budget_seconds, 2);
}

TEST(DecodeBatches, grow_by_a_token_a_step) {
  FakeBench fake;
  {
    DecodeBatch batch(fake.bench, fake.executor, 3);
    ASSERT_TRUE(batch.fill(70));
    const auto ms = time_steps(fake.bench, batch, {.least = 5, .most = 9, .seconds = 0});
    ASSERT_TRUE(ms) << ms.error().message;
    EXPECT_EQ(ms->size(), 5u);
    EXPECT_EQ(fake.executor.steps.back().items.size(), 3u);
    EXPECT_EQ(fake.executor.kv().length(fake.executor.steps.back().items[0].sequence), 75);
  }
  EXPECT_EQ(fake.executor.kv().num_sequences(), 0);
}

TEST(DecodeBatches, copy_what_forks_must_not_share_before_anything_is_timed) {
  FakeBench fake;
  engine::KvPool& kv = fake.executor.kv();
  DecodeBatch contexts(fake.bench, fake.executor, 3);
  ASSERT_TRUE(contexts.fill(6));  // a page and a half
  const auto forks = contexts.fork(2);
  ASSERT_TRUE(forks) << forks.error().message;
  const auto fork = fake.executor.steps.back().items[0].sequence;
  EXPECT_EQ(kv.length(fork), 7);
  ASSERT_TRUE(kv.reserve(fork, 1));
  EXPECT_TRUE(kv.take_copies().empty());
  const auto sample = (*forks)->sample(5);
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_EQ(sample->steps, 5);
  EXPECT_EQ(sample->bytes, 5 * 1110);
  EXPECT_EQ(kv.length(fork), 12);
  EXPECT_EQ(kv.length(fake.executor.steps[0].items[0].sequence), 6) << "contexts stay";
}

TEST(DecodeBatches, go_on_with_what_they_chose) {
  FakeBench fake;
  DecodeBatch batch(fake.bench, fake.executor, 1);
  ASSERT_TRUE(batch.sample(2));
  const auto& steps = fake.executor.steps;
  EXPECT_EQ(steps[1].items[0].tokens[0], (steps[0].items[0].tokens[0] + 1) % 100);
}

TEST(RouterProbes, count_loads_and_pairs) {
  RouterProbe probe({.num_layers = 2, .num_experts = 4, .experts_per_token = 2});
  std::vector<std::int32_t> chosen = {0, 1, 0, 2};
  std::vector<float> weights(4, 0.5f);
  probe.routed(0, chosen, weights);
  probe.routed(1, chosen, weights);
  EXPECT_EQ(probe.tokens(), 2);
  EXPECT_EQ(probe.load(0), (std::vector<std::int64_t>{2, 1, 1, 0}));
  EXPECT_EQ(probe.together(1)[0 * 4 + 1], 1);
  EXPECT_EQ(probe.together(1)[1 * 4 + 0], 1);
  EXPECT_EQ(probe.together(1)[0], 0);
  EXPECT_DOUBLE_EQ(imbalance(probe.load(0)), 2);
  EXPECT_DOUBLE_EQ(imbalance({0, 0}), 0);
}

}  // namespace
}  // namespace gauntlet::study::inline bench
