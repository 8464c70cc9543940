// Is a step whose sums are NCCL's, captured and not, what one executor computes?
#include "engine/cuda/ranks/nccl_sum.h"

#include <gmock/gmock.h>

#include <array>

#include "core/ranks/thread_group.h"
#include "engine/rank_halves.h"
#include "engine/steps/cuda_executor.h"
#include "engine/steps/routing_tape.h"

namespace gauntlet::engine::cuda {
namespace {

/// As of RankSumOnGpu: products of rows that differ in their last bits.
constexpr float kTolerance = 0.15f;

RankGroups groups_of_one(const model::ModelConfig& config) {
  return {.rank = 0,
          .vocab = {{0, config.vocab}},
          .attention = {0},
          .experts = {0},
          .layers = config.num_layers,
          .tokens = 512,
          .hidden = config.hidden,
          .logit_rows = 256};
}

std::unique_ptr<Executor> nccl_executor(const model::ModelWeights& weights, Graphs graphs,
                                        std::shared_ptr<RankSum> sum) {
  return std::move(make_cuda_executor(weights, {.options = {.cuda = {.graphs = graphs}},
                                                .max_sequences = 4,
                                                .max_tokens = 1024,
                                                .max_batch_tokens = 512,
                                                .gpu_memory = 0.4,
                                                .rank_sum = std::move(sum)})
                       .value());
}

TEST(NcclSumOnGpu, of_one_rank_is_the_whole_model_in_captured_steps) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const auto weights = golden_model("gauntlet-tiny");
  const auto group = ranks::alone();
  auto sum = NcclSum::make(*group, groups_of_one(weights.config));
  if (!sum) GTEST_SKIP() << sum.error().message;
  RoutingTape tape;
  std::vector<std::vector<float>> whole;
  {
    const auto executor = nccl_executor(weights, Graphs::on, nullptr);
    tape.record(*executor);
    whole = logits_of(*executor, 60);
  }
  {
    const auto executor = nccl_executor(weights, Graphs::on, *sum);
    tape.replay(*executor);
    expect_close(whole, logits_of(*executor, 60), kTolerance);
  }
  // Without a tape, steps that decode are graphs: the same bits as launched one by one.
  std::array<std::vector<std::vector<float>>, 2> free;
  for (const Graphs graphs : {Graphs::on, Graphs::off}) {
    free[graphs == Graphs::on ? 0 : 1] = logits_of(*nccl_executor(weights, graphs, *sum), 60);
  }
  EXPECT_EQ(free[0], free[1]);
}

TEST(NcclSumOnGpu, of_two_ranks_needs_two_gpus) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  std::array<std::string, 2> sentences;
  const auto done = ranks::run_threads(2, [&](ranks::Group& group) -> Expected<void> {
    cuda_check(cudaSetDevice(0));
    RankGroups groups = groups_of_one({.num_layers = 2, .hidden = 64, .vocab = 128});
    groups.rank = group.rank();
    groups.vocab = {{0, 64}, {64, 128}};
    groups.attention = groups.experts = {0, 1};
    const auto sum = NcclSum::make(group, groups);
    if (sum) return Error{"two ranks of one GPU joined"};
    sentences[static_cast<std::size_t>(group.rank())] = sum.error().message;
    return group.barrier();
  });
  EXPECT_TRUE(done) << done.error().message;
  for (const std::string& sentence : sentences) {
    EXPECT_THAT(sentence,
                testing::AnyOf(testing::HasSubstr("needs 2 GPUs"), testing::HasSubstr("libnccl")));
  }
}

}  // namespace
}  // namespace gauntlet::engine::cuda
