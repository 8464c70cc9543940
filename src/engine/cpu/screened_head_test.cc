// A screened head gives the full head's tokens, from a small part of its logits; and is used only
// where tokens are all that is wanted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random.h"
#include "engine/steps/cpu_executor.h"
#include "engine/test_run.h"
#include "model/weights.h"

namespace gauntlet::engine {
namespace {

using kernels::cpu::SimdLevel;
using testing::Contains;
using testing::HasSubstr;

/// As narrow as it may be, with a vocabulary that is worth screening: 9 MB, not whole groups.
model::ModelConfig wide_vocabulary() {
  return {.name = "narrow",
          .num_layers = 2,
          .hidden = 64,
          .intermediate = 32,
          .num_heads = 2,
          .num_kv_heads = 1,
          .head_dim = 32,
          .num_experts = 4,
          .experts_per_token = 2,
          .vocab = 70003,
          .max_positions = 512,
          .sliding_window = 16,
          .attention = model::alternating_attention(2)};
}

struct Decoded {
  std::vector<std::vector<std::int32_t>> ids;  // per step
  std::int64_t most_exact_logits = 0;
};

class ScreenedHeads : public testing::Test {
 protected:
  void SetUp() override {
    if (kernels::cpu::available_levels().back() < SimdLevel::avx512) {
      GTEST_SKIP() << "this machine has no VNNI: heads are full";
    }
  }
  std::unique_ptr<Executor> make(const EngineOptions& options) const {
    return std::move(make_cpu_executor(weights_, {.options = options}).value());
  }
  static ItemResult one_step(Executor& executor, BatchItem item) {
    item.sequence = executor.kv().create();
    const SequenceId sequence = item.sequence;
    ItemResult result = step(executor, std::move(item));
    executor.kv().free(sequence);
    return result;
  }
  static Decoded decode_greedily(Executor& executor, std::int64_t batch, int steps) {
    const Random random(9);
    std::vector<SequenceId> sequences;
    std::vector<std::int32_t> next;
    for (std::int64_t i = 0; i < batch; ++i) {
      sequences.push_back(executor.kv().create());
      next.push_back(static_cast<std::int32_t>(
          random.below(static_cast<std::uint64_t>(executor.config().vocab), 100 + i)));
    }
    Decoded decoded;
    for (int s = 0; s < steps; ++s) {
      std::vector<BatchItem> items;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        items.push_back({.sequence = sequences[i], .tokens = {next[i]}});
        EXPECT_TRUE(executor.kv().reserve(sequences[i], 1));
      }
      const auto results = executor.collect(executor.submit(std::move(items)));
      for (std::size_t i = 0; i < results.size(); ++i) next[i] = results[i].token;
      decoded.ids.push_back(next);
      decoded.most_exact_logits =
          std::max(decoded.most_exact_logits, executor.last_traffic().exact_logits);
    }
    for (const SequenceId sequence : sequences) executor.kv().free(sequence);
    return decoded;
  }

  const model::ModelWeights weights_ = model::random_model(wide_vocabulary(), 3);
};

TEST_F(ScreenedHeads, choose_the_full_heads_tokens) {
  for (const Activations activations : {Activations::f32, Activations::int8}) {
    const auto full = make({.threads = 1, .activations = activations, .head = HeadKind::full});
    for (const int threads : {1, 2, 3, 4}) {
      const auto screened = make({.threads = threads, .activations = activations});
      for (const std::int64_t batch : {1, 2, 3, 4}) {
        const Decoded all = decode_greedily(*full, batch, 8);
        const Decoded few = decode_greedily(*screened, batch, 8);
        EXPECT_EQ(all.ids, few.ids) << threads << " threads, batch " << batch;
        EXPECT_EQ(all.most_exact_logits, batch * 70003);
        EXPECT_LT(few.most_exact_logits, all.most_exact_logits / 50) << "batch " << batch;
      }
    }
  }
}

TEST_F(ScreenedHeads, do_so_at_every_level_that_has_one) {
  for (const SimdLevel level : kernels::cpu::available_levels()) {
    const auto executor = make({.simd = level, .threads = 1});
    EXPECT_EQ(executor->plan().head,
              level >= SimdLevel::avx512 ? HeadKind::screened : HeadKind::full);
    if (level < SimdLevel::avx512) continue;
    const auto full = make({.simd = level, .threads = 1, .head = HeadKind::full});
    EXPECT_EQ(decode_greedily(*full, 2, 8).ids, decode_greedily(*executor, 2, 8).ids);
  }
}

TEST_F(ScreenedHeads, read_less_and_say_what_they_cost) {
  const auto full = make({.threads = 2, .head = HeadKind::full});
  const auto screened = make({.threads = 2});
  one_step(*full, {.tokens = {5}});
  one_step(*screened, {.tokens = {5}});
  const std::int64_t saved =
      full->last_traffic().dense_bytes - screened->last_traffic().dense_bytes;
  EXPECT_GT(saved, 70003 * 64 * 8 / 10) << "the plane has a byte per weight, the head has two";
  EXPECT_LT(saved, 70003 * 64);
  EXPECT_EQ(screened->weight_bytes() - full->weight_bytes(), 70016 * (64 + 64 / 32));
  EXPECT_EQ(screened->plan().screen_bytes, 70016 * (64 + 64 / 32 + 8));
  EXPECT_THAT(screened->plan().describe(), Contains(HasSubstr("head: screened")));
  EXPECT_THAT(full->plan().describe(), Contains("head: full"));
}

TEST_F(ScreenedHeads, are_full_where_more_than_a_greedy_token_is_wanted) {
  const auto executor = make({.threads = 2});
  const auto exact_logits = [&](BatchItem item) {
    one_step(*executor, std::move(item));
    return executor->last_traffic().exact_logits;
  };
  const std::int64_t all = 70003;
  EXPECT_LT(exact_logits({.tokens = {7}}), all / 50);
  EXPECT_LT(exact_logits({.tokens = {7, 8, 9, 10, 11, 12}}), all / 50) << "of a prompt's last";
  EXPECT_EQ(exact_logits({.tokens = {7}, .want = Want::nothing}), 0);
  EXPECT_EQ(exact_logits({.tokens = {7}, .want = Want::logits}), all);
  EXPECT_EQ(exact_logits({.tokens = {7}, .want = Want::log_probability}), all);
  EXPECT_EQ(exact_logits({.tokens = {7}, .sampling = {.temperature = 1}}), all);
  EXPECT_EQ(exact_logits({.tokens = {7}, .targets = {8}}), all);
  EXPECT_EQ(exact_logits({.tokens = {7}, .allowed = std::vector<std::uint32_t>(2188, ~0u)}), all);
  EXPECT_EQ(decode_greedily(*executor, 5, 1).most_exact_logits, 5 * all) << "too many at once";
}

TEST_F(ScreenedHeads, give_no_log_probability_unless_it_is_wanted) {
  const auto executor = make({.threads = 1});
  EXPECT_EQ(one_step(*executor, {.tokens = {7}}).log_probability, 0);
  const ItemResult scored = one_step(*executor, {.tokens = {7}, .want = Want::log_probability});
  EXPECT_LT(scored.log_probability, 0);
  EXPECT_TRUE(scored.logits.empty());
}

TEST_F(ScreenedHeads, take_all_logits_where_a_weight_is_not_finite) {
  // Through a norm weight: x then is infinite in one place, whatever the residual.
  model::ModelWeights broken = weights_;
  broken.final_norm[5] = std::numeric_limits<float>::infinity();
  const auto make_broken = [&](HeadKind head) {
    const EngineOptions options{.threads = 2, .head = head};
    return std::move(make_cpu_executor(broken, {.options = options}).value());
  };
  const auto screened = make_broken(HeadKind::screened);
  const auto full = make_broken(HeadKind::full);
  EXPECT_EQ(one_step(*screened, {.tokens = {7}}).token, one_step(*full, {.tokens = {7}}).token);
  EXPECT_EQ(screened->last_traffic().exact_logits, 70003);
}

TEST(SmallHeads, are_not_screened) {
  const auto weights =
      model::load_model(std::string(GAUNTLET_SOURCE_DIR) + "/models/gauntlet-tiny").value();
  const auto executor = make_cpu_executor(weights, {});
  EXPECT_EQ((*executor)->plan().head, HeadKind::full);
  EXPECT_EQ((*executor)->plan().screen_bytes, 0);
}

}  // namespace
}  // namespace gauntlet::engine
