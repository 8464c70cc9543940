// Does a token with guesses behind it get, row by row, what decoding one by one gives?
#include <gtest/gtest.h>

#include "engine/golden.h"
#include "engine/steps/cuda_executor.h"

namespace gauntlet::engine::cuda {
namespace {

constexpr int kGuesses = 3;

std::vector<std::int32_t> ids_of(std::int32_t sequence, std::int32_t count) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < count; ++i) ids.push_back((sequence * 97 + i * 31) % 4096);
  return ids;
}

/// Four sequences of different lengths, each with four more tokens, in one step or in four; then
/// one token more, as if the last two guesses had been refused.
std::vector<std::vector<float>> logits_of(Executor& executor, bool at_once) {
  constexpr int kSequences = 4;
  std::vector<std::vector<float>> all;
  std::vector<SequenceId> sequences;
  for (std::int32_t s = 0; s < kSequences; ++s) {
    sequences.push_back(executor.kv().create());
    const auto prompt = ids_of(s, 40 + 63 * s);
    prefill(executor, sequences.back(), prompt, 512);
  }
  const auto run = [&](std::vector<BatchItem> items) {
    for (const BatchItem& item : items) {
      check(executor.kv().reserve(item.sequence, std::ssize(item.tokens)), "no pages");
    }
    return executor.collect(executor.submit(std::move(items)));
  };
  if (at_once) {
    std::vector<BatchItem> items;
    for (std::int32_t s = 0; s < kSequences; ++s) {
      BatchItem& item = items.emplace_back();
      item.sequence = sequences[static_cast<std::size_t>(s)];
      item.tokens = ids_of(s + 50, 1 + kGuesses);
      item.want = Want::logits;
      item.num_drafts = kGuesses;
      item.role = ItemRole::decode;
      for (std::int64_t t = 0; t < kGuesses; ++t) {
        item.rows.push_back({.token = t, .want = Want::logits});
      }
    }
    auto results = run(std::move(items));
    for (std::size_t t = 0; t <= kGuesses; ++t) {
      for (ItemResult& result : results) {
        all.push_back(t < kGuesses ? std::move(result.rows[t].logits) : std::move(result.logits));
      }
    }
    for (const SequenceId sequence : sequences) executor.kv().commit(sequence, 1);
  } else {
    std::vector<SequenceId> refused;
    for (std::size_t t = 0; t <= kGuesses; ++t) {
      // What is refused is decoded in forks, which go.
      for (std::size_t s = 0; t == 2 && s < kSequences; ++s) {
        refused.push_back(executor.kv().fork(sequences[s]));
      }
      std::vector<BatchItem> items;
      for (std::int32_t s = 0; s < kSequences; ++s) {
        items.push_back({.sequence = (t < 2 ? sequences : refused)[static_cast<std::size_t>(s)],
                         .tokens = {ids_of(s + 50, 1 + kGuesses)[t]},
                         .want = Want::logits});
      }
      for (ItemResult& result : run(std::move(items))) all.push_back(std::move(result.logits));
    }
    for (const SequenceId sequence : refused) executor.kv().free(sequence);
  }
  for (const SequenceId sequence : sequences) {
    all.push_back(decode(executor, sequence, 77).logits);
    executor.kv().free(sequence);
  }
  return all;
}

TEST(GuessesOnGpu, have_the_bits_of_decoding_one_by_one_in_graphs_and_without) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const auto weights = golden_model("gauntlet-tiny");
  for (const Graphs graphs : {Graphs::on, Graphs::off}) {
    for (const Fusion fusion : {Fusion::fused, Fusion::op_by_op}) {
      for (const std::int64_t sequences : {16, 4}) {  // one launch, or two
        const EngineOptions options{
            .fusion = fusion, .cuda = {.graphs = graphs, .determinism = Determinism::per_request}};
        const auto executor = std::move(make_cuda_executor(weights, {.options = options,
                                                                     .max_sequences = sequences + 4,
                                                                     .max_tokens = 4096,
                                                                     .max_batch_tokens = 512})
                                            .value());
        EXPECT_EQ(logits_of(*executor, true), logits_of(*executor, false));
      }
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::cuda
