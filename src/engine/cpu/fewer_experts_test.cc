// Is a step with fewer experts what a model that has so many would compute, and does it leave the
// model's own steps as they are?
#include "engine/cpu/layers_cases.h"

namespace gauntlet::engine::cpu {
namespace {

std::unique_ptr<Executor> small_executor(std::int64_t experts_per_token,
                                         const EngineOptions& options) {
  model::ModelWeights weights = small_model();
  weights.config.experts_per_token = experts_per_token;
  return std::move(
      make_cpu_executor(weights, {.options = options, .max_sequences = 2, .max_tokens = 512})
          .value());
}

/// Logits after the first so many tokens, uncommitted and by fewer experts, or as the model has it.
std::vector<float> logits_after(Executor& executor, SequenceId sequence, std::int64_t count,
                                int experts) {
  const auto ids = small_ids();
  BatchItem item{.sequence = sequence,
                 .tokens = {ids.begin(), ids.begin() + count},
                 .want = Want::logits,
                 .num_drafts = count,
                 .role = ItemRole::decode,
                 .experts_per_token = experts};
  check(executor.kv().reserve(sequence, count), "a test has room");
  std::vector<BatchItem> items;
  items.push_back(std::move(item));
  return executor.collect(executor.submit(std::move(items)))[0].logits;
}

TEST(FewerExperts, are_what_a_model_that_has_so_many_computes) {
  for (const EngineOptions& options : {EngineOptions{.threads = 1}, EngineOptions{.threads = 2},
                                       EngineOptions{.threads = 2, .fusion = Fusion::op_by_op}}) {
    const auto two = small_executor(2, options), one = small_executor(1, options);
    const SequenceId of_two = two->kv().create(), of_one = one->kv().create();
    for (const std::int64_t count : {1, 3, 37}) {  // steps that each worker repeats, and that not
      const auto whole = logits_after(*two, of_two, count, 0);
      const auto fewer = logits_after(*two, of_two, count, 1);
      EXPECT_EQ(fewer, logits_after(*one, of_one, count, 0)) << count;
      EXPECT_NE(fewer, whole) << count;
      EXPECT_EQ(whole, logits_after(*two, of_two, count, 2)) << "as many by name";
      EXPECT_EQ(whole, logits_after(*two, of_two, count, 0)) << "nothing of it stays";
    }
  }
}

TEST(FewerExperts, are_refused_where_the_model_has_no_more) {
  const auto executor = small_executor(2, {});
  EXPECT_ANY_THROW(logits_after(*executor, executor->kv().create(), 1, 3));
  EXPECT_ANY_THROW(logits_after(*executor, executor->kv().create(), 1, -1));
}

}  // namespace
}  // namespace gauntlet::engine::cpu
