// Does a GPU that sums over ranks, in graphs and without them, compute what the whole model does?
#include <cuda_runtime_api.h>

#include <thread>

#include "core/cuda/memory.h"
#include "engine/rank_halves.h"
#include "engine/steps/cuda_executor.h"
#include "engine/steps/routing_tape.h"

namespace gauntlet::engine::cuda {
namespace {

/// bf16 products of rows that differ in their last bits; a sum that is left out moves logits by
/// whole numbers.
constexpr float kTolerance = 0.15f;

/// Of the only rank there is, as a kernel would do it: what stands is copied away and back.
class CopiedSum final : public RankSum {
 public:
  void add_up(const PartialRows& part, void* stream) override {
    auto* queue = static_cast<cudaStream_t>(stream);
    const auto bytes = static_cast<std::size_t>(part.count()) * sizeof(float);
    check(part.count() <= kMostNumbers, "the test's buffer is too small");
    cuda_check(cudaMemcpyAsync(kept_.data(), part.values, bytes, cudaMemcpyDeviceToDevice, queue));
    cuda_check(cudaMemsetAsync(part.values, 0, bytes, queue));
    cuda_check(cudaMemcpyAsync(part.values, kept_.data(), bytes, cudaMemcpyDeviceToDevice, queue));
  }

 private:
  static constexpr std::int64_t kMostNumbers = 1 << 22;
  DeviceMemory kept_{kMostNumbers * 4};
};

/// One of two ranks on one GPU, which meet on the host: not to be captured.
class RankOnHost final : public RankSum {
 public:
  RankOnHost(SumOfTwo& sum, int rank) : sum_(sum), rank_(rank) {}
  void add_up(const PartialRows& part, void* stream) override {
    auto* queue = static_cast<cudaStream_t>(stream);
    std::vector<float> values(static_cast<std::size_t>(part.count()));
    const std::size_t bytes = values.size() * sizeof(float);
    cuda_check(cudaMemcpyAsync(values.data(), part.values, bytes, cudaMemcpyDeviceToHost, queue));
    cuda_check(cudaStreamSynchronize(queue));
    sum_.add_up(rank_, values);
    cuda_check(cudaMemcpyAsync(part.values, values.data(), bytes, cudaMemcpyHostToDevice, queue));
    cuda_check(cudaStreamSynchronize(queue));
  }

 private:
  SumOfTwo& sum_;
  int rank_;
};

std::unique_ptr<Executor> gpu_executor(const model::ModelWeights& weights,
                                       const EngineOptions& options, std::shared_ptr<RankSum> sum) {
  return std::move(make_cuda_executor(weights, {.options = options,
                                                .max_sequences = 4,
                                                .max_tokens = 1024,
                                                .max_batch_tokens = 512,
                                                .gpu_memory = 0.4,
                                                .rank_sum = std::move(sum)})
                       .value());
}

/// What the whole model gives, and its choices of experts: undecided ones would else differ.
struct WholeRun {
  WholeRun(const model::ModelWeights& weights, const EngineOptions& options) {
    const auto executor = gpu_executor(weights, options, nullptr);
    tape.record(*executor);
    logits = logits_of(*executor, 60);
  }
  RoutingTape tape;
  std::vector<std::vector<float>> logits;
};

TEST(RankSumOnGpu, of_one_rank_is_the_whole_model) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const auto weights = golden_model("gauntlet-tiny");
  for (const EngineOptions& options :
       {EngineOptions{}, EngineOptions{.fusion = Fusion::op_by_op},
        EngineOptions{.cuda = {.weight_layout = WeightLayout::rows}}}) {
    WholeRun whole(weights, options);
    const auto executor = gpu_executor(weights, options, std::make_shared<CopiedSum>());
    whole.tape.replay(*executor);
    expect_close(whole.logits, logits_of(*executor, 60), kTolerance);
  }
}

TEST(RankSumOnGpu, has_the_same_bits_in_graphs) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const auto weights = golden_model("gauntlet-tiny");
  for (const Fusion fusion : {Fusion::fused, Fusion::op_by_op}) {
    const auto logits_by = [&](Graphs graphs) {
      const EngineOptions options{.fusion = fusion, .cuda = {.graphs = graphs}};
      return logits_of(*gpu_executor(weights, options, std::make_shared<CopiedSum>()), 60);
    };
    EXPECT_EQ(logits_by(Graphs::on), logits_by(Graphs::off));
  }
}

TEST(RankSumOnGpu, of_two_halves_is_the_whole_model_with_the_same_bits_on_both) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const auto weights = golden_model("gauntlet-tiny");
  for (const Fusion fusion : {Fusion::fused, Fusion::op_by_op}) {
    const EngineOptions options{.fusion = fusion, .cuda = {.graphs = Graphs::off}};
    const WholeRun whole(weights, options);
    SumOfTwo sum;
    RoutingTape tapes[2] = {whole.tape, whole.tape};
    std::unique_ptr<Executor> executors[2];
    std::vector<std::vector<float>> got[2];
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      executors[rank] =
          gpu_executor(half_of(weights, rank), options, std::make_shared<RankOnHost>(sum, rank));
      tapes[rank].replay(*executors[rank]);
    }
    for (int rank = 0; rank < 2; ++rank) {
      ranks.emplace_back([&, rank] { got[rank] = logits_of(*executors[rank], 60); });
    }
    for (std::thread& rank : ranks) rank.join();
    EXPECT_EQ(got[0], got[1]);
    expect_close(whole.logits, got[0], kTolerance);
  }
}

}  // namespace
}  // namespace gauntlet::engine::cuda
