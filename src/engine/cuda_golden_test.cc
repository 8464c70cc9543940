// Does the GPU choose what Hugging Face's implementation chooses, by every plan it can run?
#include <cmath>

#include "engine/cuda_executor.h"
#include "engine/golden.h"

namespace gauntlet::engine {
namespace {

/// bf16 products leave differences of hundredths; below this margin a choice may change.
constexpr float kDecidedOnGpu = 0.1f;
constexpr float kGpuLogitTolerance = 0.15f;

#define GAUNTLET_NEEDS_CUDA_EXECUTOR()                            \
  do {                                                            \
    const std::string reason = no_cuda_executor_reason();         \
    if (!reason.empty()) GTEST_SKIP() << "not tried: " << reason; \
  } while (false)

std::unique_ptr<Executor> gpu_executor(const model::ModelWeights& weights,
                                       const EngineOptions& options) {
  return std::move(
      make_cuda_executor(weights, {.options = options, .max_sequences = 8, .max_tokens = 16384})
          .value());
}

struct Worst {
  float logit = 0;
  int wrong_choices = 0;
  int choices = 0;
};

void compare(Executor& executor, const GoldenCase& golden, std::int64_t chunk, Worst& worst) {
  const SequenceId sequence = executor.kv().create();
  const ItemResult after = prefill(executor, sequence, golden.ids, chunk);
  float own = 0;
  for (const auto& [id, logit] : golden.top) {
    own = std::max(own, std::abs(after.logits[static_cast<std::size_t>(id)] - logit));
  }
  EXPECT_LE(own, kGpuLogitTolerance) << golden.ids.size() << " tokens in chunks of " << chunk;
  worst.logit = std::max(worst.logit, own);
  std::int32_t chosen = after.token;
  for (std::size_t i = 0; i < golden.greedy.size(); ++i) {
    if (golden.margins[i] >= kDecidedOnGpu) {
      ++worst.choices;
      worst.wrong_choices += chosen != golden.greedy[i] ? 1 : 0;
    }
    chosen = decode(executor, sequence, golden.greedy[i]).token;
  }
  executor.kv().free(sequence);
}

void expect_golden_on_gpu(const std::string& name, const EngineOptions& options) {
  const auto weights = golden_model(name);
  const auto executor = gpu_executor(weights, options);
  Worst worst;
  for (const GoldenCase& golden : golden_cases(name)) {
    for (const std::int64_t chunk : {8192, 333, 7}) {
      if (chunk == 7 && golden.ids.size() > 210) continue;
      compare(*executor, golden, chunk, worst);
    }
  }
  EXPECT_EQ(worst.wrong_choices, 0) << "of " << worst.choices;
  testing::Test::RecordProperty("worst_logit", std::to_string(worst.logit));
  testing::Test::RecordProperty("choices", worst.choices);
}

TEST(CudaGoldenOnGpu, logits_and_choices_match_on_gauntlet_tiny) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  expect_golden_on_gpu("gauntlet-tiny", {});
}

TEST(CudaGoldenOnGpu, logits_and_choices_match_on_gauntlet_draft) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  expect_golden_on_gpu("gauntlet-draft", {});
}

TEST(CudaGoldenOnGpu, every_switch_off_gives_the_same_choices) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  const EngineOptions switches[] = {
      {.attention = AttentionKind::naive},
      {.experts = ExpertWeightsKind::dequantised},
      {.cuda = {.pipelines = Pipelines::plain}},
      {.cuda = {.graphs = Graphs::off}},
      {.cuda = {.dependent_launch = DependentLaunch::off}},
      {.cuda = {.graphs = Graphs::off, .dependent_launch = DependentLaunch::off}},
      {.cuda = {.determinism = Determinism::per_request}},
  };
  for (const EngineOptions& options : switches) expect_golden_on_gpu("gauntlet-tiny", options);
}

/// exp of the mean negative log-probability of the golden prompts.
double perplexity(Executor& executor, const std::vector<GoldenCase>& cases) {
  double sum = 0;
  std::size_t count = 0;
  for (const GoldenCase& golden : cases) {
    for (const double value : score(executor, golden.ids, 8192)) sum += value, ++count;
  }
  return std::exp(-sum / static_cast<double>(count));
}

TEST(CudaGoldenOnGpu, perplexity_stays_within_one_percent_in_bf16_and_two_in_fp8) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  const auto weights = golden_model("gauntlet-tiny");
  const auto cases = golden_cases("gauntlet-tiny");
  double log_sum = 0;
  std::size_t count = 0;
  for (const GoldenCase& golden : cases) {
    log_sum += golden.mean_log_prob * static_cast<double>(golden.ids.size() - 1);
    count += golden.ids.size() - 1;
  }
  const double exact = std::exp(-log_sum / static_cast<double>(count));
  const auto bf16 = gpu_executor(weights, {.kv = KvType::bf16});
  EXPECT_NEAR(perplexity(*bf16, cases) / exact, 1.0, 0.01);
  const auto fp8 = gpu_executor(weights, {.kv = KvType::fp8});
  EXPECT_NEAR(perplexity(*fp8, cases) / exact, 1.0, 0.02);
}

}  // namespace
}  // namespace gauntlet::engine
