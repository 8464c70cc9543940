#include "engine/ranks/rank_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/ranks/thread_group.h"
#include "engine/golden.h"
#include "engine/rank_halves.h"
#include "engine/ranks/rank_memory.h"

namespace gauntlet::engine {
namespace {

using testing::HasSubstr;

const CpuExecutorConfig kCpu{
    .options = {.threads = 1}, .max_sequences = 4, .max_tokens = 1024, .max_batch_tokens = 64};

/// Logits after a prompt in chunks, and after tokens more; a fork in between, and a sampled token.
struct Transcript {
  std::vector<std::vector<float>> logits;
  std::vector<std::int32_t> tokens;
};

Transcript transcript_of(Executor& executor) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 150; ++i) ids.push_back(i * 37 % 4000);
  Transcript all;
  const SequenceId sequence = executor.kv().create();
  all.logits.push_back(prefill(executor, sequence, ids, 64).logits);
  const SequenceId fork = executor.kv().fork(sequence);
  for (const std::int32_t id : {7, 900, 33}) {
    all.logits.push_back(decode(executor, sequence, id).logits);
    all.logits.push_back(decode(executor, fork, id + 1).logits);
  }
  for (int draw = 0; draw < 3; ++draw) {
    check(executor.kv().reserve(sequence, 1) && executor.kv().reserve(fork, 1), "pages");
    std::vector<BatchItem> items(2);
    items[0] = {.sequence = sequence,
                .tokens = {5},
                .sampling = {.temperature = 1, .seed = 3, .step = draw}};
    items[1] = {.sequence = fork, .tokens = {6 + draw}};
    for (const ItemResult& result : executor.collect(executor.submit(std::move(items)))) {
      all.tokens.push_back(result.token);
    }
  }
  executor.kv().free(fork);
  executor.kv().free(sequence);
  return all;
}

Expected<void> on_mesh(const model::ModelWeights& weights, const RankConfig& config,
                       const std::function<void(Executor&)>& body, int ranks = 0) {
  return ranks::run_threads(ranks > 0 ? ranks : config.mesh.ranks(),
                            [&](ranks::Group& group) -> Expected<void> {
                              if (group.rank() > 0) return follow_ranks(group, weights, config);
                              const auto executor = lead_ranks(group, weights, config);
                              if (!executor) return executor.error();
                              body(**executor);
                              return {};
                            });
}

class OnMesh : public testing::TestWithParam<const char*> {
 protected:
  OnMesh() : weights_(golden_model("gauntlet-tiny")) {
    weights_.storage = std::make_shared<Kept>(weights_.storage);
    alone_ = transcript_of(**make_cpu_executor(weights_, kCpu));
  }
  Transcript on(RankSums sums) {
    Transcript transcript;
    const auto done =
        on_mesh(weights_, {.mesh = *Mesh::parse(GetParam()), .sums = sums, .cpu = kCpu},
                [&](Executor& executor) { transcript = transcript_of(executor); });
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return transcript;
  }

  model::ModelWeights weights_;
  Transcript alone_;
};

TEST_P(OnMesh, ordered_sums_have_one_ranks_bits) {
  const Transcript transcript = on(RankSums::ordered);
  EXPECT_TRUE(transcript.logits == alone_.logits);
  EXPECT_EQ(transcript.tokens, alone_.tokens);
}

TEST_P(OnMesh, reduced_sums_choose_the_same_where_it_is_clear) {
  const Mesh mesh = *Mesh::parse(GetParam());
  const Transcript transcript = on(RankSums::reduced);
  ASSERT_EQ(transcript.logits.size(), alone_.logits.size());
  // Layers alone divide no sum.
  if (mesh.stage_ranks() == 1) {
    EXPECT_TRUE(transcript.logits == alone_.logits);
  }
  int clear = 0;
  for (std::size_t i = 0; i < alone_.logits.size(); ++i) {
    std::vector<float> sorted = alone_.logits[i];
    std::ranges::nth_element(sorted, sorted.begin() + 1, std::greater());
    const float margin = *std::ranges::max_element(alone_.logits[i]) - sorted[1];
    if (margin < 0.1f) continue;
    ++clear;
    const auto largest = [](const std::vector<float>& logits) {
      return std::ranges::max_element(logits) - logits.begin();
    };
    EXPECT_EQ(largest(transcript.logits[i]), largest(alone_.logits[i])) << "row " << i;
  }
  EXPECT_GE(clear, 3);
}

INSTANTIATE_TEST_SUITE_P(, OnMesh,
                         testing::Values("tp1", "tp2", "tp4", "ep2", "ep4", "pp2", "pp3", "tp2,pp2",
                                         "tp2,ep2", "tp2,ep4", "tp4,ep2"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::erase(name, ',');
                           return name;
                         });

TEST(LeadRanks, takes_any_number_of_threads_on_each_rank) {
  auto weights = golden_model("gauntlet-tiny");
  weights.storage = std::make_shared<Kept>(weights.storage);
  const Transcript alone = transcript_of(**make_cpu_executor(weights, kCpu));
  CpuExecutorConfig cpu = kCpu;
  cpu.options.threads = 3;
  for (const RankSums sums : {RankSums::ordered, RankSums::reduced}) {
    Transcript transcript;
    const auto done = on_mesh(weights, {.mesh = {.tp = 2}, .sums = sums, .cpu = cpu},
                              [&](Executor& executor) { transcript = transcript_of(executor); });
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    if (sums == RankSums::ordered) {
      EXPECT_TRUE(transcript.logits == alone.logits);
    }
  }
}

TEST(LeadRanks, holds_a_part_of_the_weights_on_each_rank) {
  auto weights = golden_model("gauntlet-tiny");
  weights.storage = std::make_shared<Kept>(weights.storage);
  const std::int64_t alone = (*make_cpu_executor(weights, kCpu))->weight_bytes();
  std::int64_t quarter = 0;
  const auto done = on_mesh(weights, {.mesh = {.tp = 4, .ep = 4}, .cpu = kCpu},
                            [&](Executor& executor) { quarter = executor.weight_bytes(); });
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  // Routers, and keys and values that two ranks have each, are not divided.
  const model::ModelConfig& config = weights.config;
  const std::int64_t routers = config.num_layers * config.num_experts * config.hidden * 2;
  const std::int64_t doubled = config.num_layers * 2 * config.head_dim * config.hidden * 2;
  EXPECT_LE(quarter,
            static_cast<std::int64_t>(1.05 * static_cast<double>(alone) / 4) + routers + doubled);
}

/// What each rank says of itself after some steps.
std::vector<RankCounters> counters_on(const model::ModelWeights& weights, RankConfig config) {
  config.pulse = std::make_shared<RankPulse>();
  const auto done = on_mesh(weights, config, [&](Executor& executor) {
    transcript_of(executor);
    config.pulse->beat();
  });
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return config.pulse->counters();
}

TEST(LeadRanks, tell_what_each_of_them_has_done) {
  auto weights = golden_model("gauntlet-tiny");
  weights.storage = std::make_shared<Kept>(weights.storage);
  for (const char* mesh : {"tp2", "pp2", "tp2,ep4"}) {
    const auto ranks = counters_on(weights, {.mesh = *Mesh::parse(mesh), .cpu = kCpu});
    ASSERT_EQ(std::ssize(ranks), Mesh::parse(mesh)->ranks());
    for (const RankCounters& rank : ranks) {
      EXPECT_EQ(rank.steps, ranks[0].steps) << mesh;
      EXPECT_GE(rank.steps, 12);
      EXPECT_GT(rank.sent_bytes, 100'000);
      EXPECT_GT(rank.waited_s, 0);
      EXPECT_LT(rank.waited_s, 60);
    }
  }
}

TEST(RankMemory, is_what_ranks_allocate) {
  auto weights = golden_model("gauntlet-tiny");
  weights.storage = std::make_shared<Kept>(weights.storage);
  for (const char* text : {"tp1", "tp4", "ep2", "pp3", "tp2,ep4", "tp2,pp2"}) {
    const Mesh mesh = *Mesh::parse(text);
    for (const RankSums sums : {RankSums::reduced, RankSums::ordered}) {
      const auto ranks = counters_on(weights, {.mesh = mesh, .sums = sums, .cpu = kCpu});
      std::int64_t kv_bytes = 0;
      for (int rank = 0; rank < mesh.ranks(); ++rank) {
        const auto memory = memory_of(weights, mesh, rank, sums, kCpu.options);
        ASSERT_TRUE(memory);
        EXPECT_EQ(ranks[rank].weight_bytes, memory->weight_bytes) << text << " rank " << rank;
        kv_bytes += ranks[rank].kv_bytes;
      }
      if (mesh.tp <= weights.config.num_kv_heads && mesh.ep <= mesh.tp) {
        const auto alone = counters_on(weights, {.cpu = kCpu});
        EXPECT_EQ(kv_bytes, alone.at(0).kv_bytes) << text;
      }
    }
  }
}

/// Of one rank among four: a quarter of what one alone has, besides the routers, which all have.
std::int64_t most_of_four(const model::ModelConfig& config, std::int64_t alone) {
  const std::int64_t routers = config.num_layers * config.num_experts * config.hidden * 2;
  return static_cast<std::int64_t>(1.05 * static_cast<double>(alone - routers) / 4) + routers;
}

TEST(RankMemory, is_a_quarter_on_four_ranks_at_gpt_oss_20bs_width) {
  const auto config = model::random_shape("gpt-oss-20b", 4);
  ASSERT_TRUE(config);
  const model::ModelWeights weights = model::random_model(*config, 1);
  for (const char* text : {"tp4", "tp4,ep4"}) {
    const auto alone = memory_of(weights, {}, 0, RankSums::reduced);
    const Mesh mesh = *Mesh::parse(text);
    for (int rank = 0; rank < 4; ++rank) {
      const auto memory = memory_of(weights, mesh, rank, RankSums::reduced);
      ASSERT_TRUE(alone && memory);
      EXPECT_LE(memory->weight_bytes, most_of_four(*config, alone->weight_bytes)) << text;
      EXPECT_GE(memory->weight_bytes, alone->weight_bytes / 4 * 9 / 10) << text;
    }
  }
}

/// As above, of weights that were made, cut and packed.
TEST(RankMemory, Slow_is_a_quarter_once_packed) {
  const auto config = model::random_shape("gpt-oss-20b", 4);
  ASSERT_TRUE(config);
  const model::ModelWeights weights = model::random_model(*config, 1);
  std::int64_t alone = 0, alone_kv = 0;
  {
    RankConfig one{.cpu = kCpu, .pulse = std::make_shared<RankPulse>()};
    const auto done = on_mesh(weights, one, [&](Executor&) { one.pulse->beat(); });
    ASSERT_TRUE(done) << done.error().message;
    alone = one.pulse->counters().at(0).weight_bytes;
    alone_kv = one.pulse->counters().at(0).kv_bytes;
  }
  RankConfig four{.mesh = {.tp = 4}, .cpu = kCpu, .pulse = std::make_shared<RankPulse>()};
  const auto done = on_mesh(weights, four, [&](Executor& executor) {
    const SequenceId sequence = executor.kv().create();
    const std::vector<std::int32_t> ids = {1, 2, 3, 4, 5};
    EXPECT_EQ(std::ssize(prefill(executor, sequence, ids, 64).logits), config->vocab);
    executor.kv().free(sequence);
    four.pulse->beat();
  });
  ASSERT_TRUE(done) << done.error().message;
  for (const RankCounters& rank : four.pulse->counters()) {
    EXPECT_LE(rank.weight_bytes, most_of_four(*config, alone));
    EXPECT_EQ(rank.kv_bytes, alone_kv / 4);
  }
}

TEST(LeadRanks, refuses_another_number_of_ranks) {
  const auto weights = golden_model("gauntlet-tiny");
  const auto done = on_mesh(weights, {.mesh = {.tp = 2}, .cpu = kCpu}, [](Executor&) {}, 3);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("the mesh tp2 has 2 ranks, and 3 were started"));
}

TEST(LeadRanks, ends_where_a_rank_does_not_begin) {
  const auto weights = golden_model("gauntlet-tiny");
  const auto done = ranks::run_threads(2, [&](ranks::Group& group) -> Expected<void> {
    if (group.rank() == 1) return Error{"no more memory"};
    const auto executor = lead_ranks(group, weights, {.mesh = {.tp = 2}, .cpu = kCpu});
    return executor ? Expected<void>() : executor.error();
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "rank 1: no more memory");
}

}  // namespace
}  // namespace gauntlet::engine
