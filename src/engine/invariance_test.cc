// A sequence's logits are the same bits whatever its chunks, its batch mates, the number of
// threads, and whether operations are fused.
#include <gtest/gtest.h>

#include <cstring>

#include "core/random.h"
#include "engine/steps/cpu_executor.h"
#include "engine/test_run.h"
#include "model/weights.h"

namespace gauntlet::engine {
namespace {

std::vector<std::int32_t> random_ids(std::int64_t count, std::uint64_t seed) {
  const Random random(seed);
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<std::int32_t>(random.below(4096, static_cast<std::uint64_t>(i))));
  }
  return ids;
}

class Invariance : public testing::Test {
 protected:
  std::unique_ptr<Executor> make(const EngineOptions& options) {
    return std::move(make_cpu_executor(weights_, {.options = options}).value());
  }
  /// The prompt's logits, then those after each of three more tokens.
  std::vector<std::vector<float>> run_alone(Executor& executor, std::int64_t chunk) {
    const SequenceId sequence = executor.kv().create();
    std::vector<std::vector<float>> all = {prefill(executor, sequence, prompt_, chunk).logits};
    for (const std::int32_t id : {5, 77, 1234}) {
      all.push_back(decode(executor, sequence, id).logits);
    }
    executor.kv().free(sequence);
    return all;
  }
  /// The same among others: two mates prefill and decode in the same steps.
  std::vector<std::vector<float>> run_in_company(Executor& executor, std::int64_t chunk) {
    const SequenceId sequence = executor.kv().create();
    const SequenceId mates[] = {executor.kv().create(), executor.kv().create()};
    std::vector<std::vector<float>> all;
    std::vector<std::int32_t> ids = prompt_;
    ids.insert(ids.end(), {5, 77, 1234});
    std::uint64_t steps = 0;
    for (std::int64_t at = 0; at < std::ssize(ids);) {
      const std::int64_t left = std::ssize(prompt_) - at;
      const std::int64_t count = left > 0 ? std::min(chunk, left) : 1;
      const bool ends = at + count >= std::ssize(prompt_);
      std::vector<BatchItem> items;
      items.push_back({.sequence = mates[0], .tokens = random_ids(1 + steps % 9, steps)});
      items.push_back({.sequence = sequence,
                       .tokens = {ids.begin() + at, ids.begin() + at + count},
                       .want = ends ? Want::logits : Want::nothing});
      items.push_back({.sequence = mates[1], .tokens = random_ids(1, steps + 1000)});
      for (const BatchItem& item : items) {
        EXPECT_TRUE(executor.kv().reserve(item.sequence, std::ssize(item.tokens)));
      }
      auto results = executor.collect(executor.submit(std::move(items)));
      if (ends) all.push_back(std::move(results[1].logits));
      at += count;
      ++steps;
    }
    for (const SequenceId id : {sequence, mates[0], mates[1]}) executor.kv().free(id);
    return all;
  }
  static void expect_same_bits(const std::vector<std::vector<float>>& a,
                               const std::vector<std::vector<float>>& b, const std::string& what) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)), 0)
          << what << ", step " << i;
    }
  }

  const model::ModelWeights weights_ =
      model::load_model(std::string(GAUNTLET_SOURCE_DIR) + "/models/gauntlet-tiny").value();
  const std::vector<std::int32_t> prompt_ = random_ids(190, 42);
};

TEST_F(Invariance, chunks_do_not_change_a_bit) {
  const auto executor = make({});
  const auto whole = run_alone(*executor, 512);
  for (const std::int64_t chunk : {1, 7, 64, 100}) {
    expect_same_bits(whole, run_alone(*executor, chunk), "chunk " + std::to_string(chunk));
  }
}

TEST_F(Invariance, batch_mates_do_not_change_a_bit) {
  const auto executor = make({});
  const auto alone = run_alone(*executor, 64);
  for (const std::int64_t chunk : {1, 33, 190}) {
    expect_same_bits(alone, run_in_company(*executor, chunk), "chunk " + std::to_string(chunk));
  }
}

TEST_F(Invariance, threads_do_not_change_a_bit) {
  const auto one = run_alone(*make({.threads = 1}), 64);
  for (const int threads : {2, 3, 4}) {
    const auto executor = make({.threads = threads});
    expect_same_bits(one, run_in_company(*executor, 50), std::to_string(threads) + " threads");
  }
}

TEST_F(Invariance, fusing_does_not_change_a_bit) {
  const auto fused = run_alone(*make({}), 64);
  expect_same_bits(fused, run_alone(*make({.fusion = Fusion::op_by_op}), 64), "op by op");
  const EngineOptions rounded{.activations = Activations::int8};
  EngineOptions rounded_op_by_op = rounded;
  rounded_op_by_op.fusion = Fusion::op_by_op;
  expect_same_bits(run_alone(*make(rounded), 64), run_alone(*make(rounded_op_by_op), 64),
                   "op by op with int8");
}

TEST_F(Invariance, overlapping_stages_do_not_change_a_bit) {
  for (const Activations activations : {Activations::f32, Activations::int8}) {
    const auto apart = run_alone(*make({.activations = activations, .stages = Stages::apart}), 64);
    for (const int threads : {1, 2, 3, 4}) {
      const auto executor = make({.threads = threads, .activations = activations});
      for (const std::int64_t chunk : {1, 3, 50}) {
        expect_same_bits(apart, run_in_company(*executor, chunk),
                         std::to_string(threads) + " threads, chunk " + std::to_string(chunk));
      }
    }
  }
}

TEST_F(Invariance, a_fork_continues_as_its_parent_would) {
  const auto executor = make({});
  const auto alone = run_alone(*executor, 64);
  const SequenceId parent = executor->kv().create();
  prefill(*executor, parent, prompt_, 64);
  const SequenceId child = executor->kv().fork(parent);
  decode(*executor, parent, 9);  // writes behind the shared prefix
  std::vector<std::vector<float>> forked = {alone[0]};
  for (const std::int32_t id : {5, 77, 1234}) {
    forked.push_back(decode(*executor, child, id).logits);
  }
  expect_same_bits(alone, forked, "fork");
  EXPECT_EQ(executor->kv().check_integrity(), "");
}

}  // namespace
}  // namespace gauntlet::engine
