// Does the GPU choose what Hugging Face's implementation chooses, by every plan it can run?
#include <cmath>

#include "engine/cuda_executor.h"
#include "engine/golden.h"
#include "engine/routing_tape.h"

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
      make_cuda_executor(weights, {.options = options, .max_sequences = 64, .max_tokens = 65536})
          .value());
}

ItemResult run(Executor& executor, const std::vector<std::int32_t>& ids, std::int64_t chunk) {
  const SequenceId sequence = executor.kv().create();
  ItemResult result = prefill(executor, sequence, ids, chunk);
  executor.kv().free(sequence);
  return result;
}

/// Greedy text of its own: the same ids up to the first choice the reference was unsure of.
void expect_golden_text(const std::string& name, const EngineOptions& options,
                        const std::string& what) {
  const auto weights = golden_model(name);
  const auto executor = gpu_executor(weights, options);
  for (const GoldenCase& golden : golden_cases(name)) {
    const SequenceId sequence = executor->kv().create();
    std::int32_t chosen = prefill(*executor, sequence, golden.ids, 8192).token;
    for (std::size_t i = 0; i < golden.greedy.size() && golden.margins[i] >= kDecidedOnGpu; ++i) {
      ASSERT_EQ(chosen, golden.greedy[i])
          << what << ": position " << i << " after " << golden.ids.size() << " tokens, margin "
          << golden.margins[i];
      chosen = decode(*executor, sequence, chosen).token;
    }
    executor->kv().free(sequence);
  }
}

/// Choices with the golden ids forced, wherever the reference was sure.
void expect_golden_choices(const std::string& name, const EngineOptions& options) {
  const auto weights = golden_model(name);
  const auto executor = gpu_executor(weights, options);
  int choices = 0, wrong = 0;
  for (const GoldenCase& golden : golden_cases(name)) {
    for (const std::int64_t chunk : {8192, 333, 7}) {
      if (chunk == 7 && golden.ids.size() > 210) continue;
      const SequenceId sequence = executor->kv().create();
      std::int32_t chosen = prefill(*executor, sequence, golden.ids, chunk).token;
      for (std::size_t i = 0; i < golden.greedy.size(); ++i) {
        if (golden.margins[i] >= kDecidedOnGpu) {
          ++choices;
          wrong += chosen != golden.greedy[i] ? 1 : 0;
        }
        chosen = decode(*executor, sequence, golden.greedy[i]).token;
      }
      executor->kv().free(sequence);
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << choices;
  EXPECT_GT(choices, 1000);
}

/// Logits after the prompts. The experts are those of exact arithmetic: gauntlet-tiny's case of 210
/// tokens has a router so undecided that rounding keys and values to bf16 alone, with everything
/// else in float32, flips an expert and moves a logit by 0.29.
void expect_golden_logits(const std::string& name, const EngineOptions& options) {
  const auto weights = golden_model(name);
  const auto gpu = gpu_executor(weights, options);
  const auto exact = executor_for(weights, {});
  RoutingTape tape;
  for (const GoldenCase& golden : golden_cases(name)) {
    for (const std::int64_t chunk : {512, 7}) {
      if (chunk == 7 && golden.ids.size() > 210) continue;
      tape.record(*exact);
      run(*exact, golden.ids, chunk);
      tape.replay(*gpu);
      const ItemResult after = run(*gpu, golden.ids, chunk);
      float worst = 0;
      for (const auto& [id, logit] : golden.top) {
        worst = std::max(worst, std::abs(after.logits[static_cast<std::size_t>(id)] - logit));
      }
      EXPECT_LE(worst, kGpuLogitTolerance) << golden.ids.size() << " tokens in chunks of " << chunk;
    }
  }
}

TEST(CudaGoldenOnGpu, choices_match_on_both_models) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  for (const std::string name : {"gauntlet-tiny", "gauntlet-draft"}) {
    expect_golden_choices(name, {});
  }
}

TEST(CudaGoldenOnGpu, logits_match_on_both_models_with_the_same_experts) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  for (const std::string name : {"gauntlet-tiny", "gauntlet-draft"}) {
    expect_golden_logits(name, {});
  }
}

/// A 20b-wide model of two layers beside the CPU's, layer by layer.
TEST(CudaGoldenOnGpu, layers_of_the_20b_shape_agree_with_the_cpu) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  const auto weights = model::random_model(model::random_shape("gpt-oss-20b", 2).value(), 1);
  const auto gpu =
      std::move(make_cuda_executor(weights, {.max_sequences = 4, .max_tokens = 2048}).value());
  const auto exact =
      std::move(make_cpu_executor(weights, {.max_sequences = 4, .max_tokens = 2048}).value());
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 300; ++i) ids.push_back(i * 661 % 201088);
  for (const std::int64_t chunk : {300, 17, 1}) {  // wide, skinny and single-token kernels
    const std::vector<std::int32_t> some(ids.begin(), ids.begin() + (chunk == 1 ? 5 : 300));
    RoutingTape tape;
    tape.record(*exact);
    run(*exact, some, chunk);
    const auto wanted = tape.layers();
    tape.replay(*gpu);
    run(*gpu, some, chunk);
    const auto got = tape.layers();
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t layer = 0; layer < 2; ++layer) {
      double difference = 0, size = 0;  // over the whole prompt, whatever its chunks
      for (std::size_t l = layer; l < got.size(); l += 2) {
        for (std::size_t i = 0; i < wanted[l].size(); ++i) {
          difference += std::pow(double{got[l][i]} - wanted[l][i], 2);
          size += std::pow(double{wanted[l][i]}, 2);
        }
      }
      EXPECT_LE(std::sqrt(difference / size), 1e-2) << "layer " << layer << ", chunks of " << chunk;
      RecordProperty(
          "relative_l2_layer_" + std::to_string(layer) + "_chunk_" + std::to_string(chunk),
          std::to_string(std::sqrt(difference / size)));
    }
    exact->watch(nullptr);
    gpu->watch(nullptr);
  }
}

/// Runs a prompt and some tokens after it, beside `company` other sequences.
std::vector<std::vector<float>> logits_beside(Executor& executor, int company) {
  std::vector<std::vector<float>> all;
  std::vector<SequenceId> others;
  for (int i = 0; i < company; ++i) others.push_back(executor.kv().create());
  const SequenceId own = executor.kv().create();
  for (int s = 0; s < 6; ++s) {
    std::vector<BatchItem> items;
    for (int i = 0; i < company; ++i) {
      std::vector<std::int32_t> tokens;
      for (int t = 0; t < (s == 0 ? 3 + 40 * i : 1 + i % 2 * s); ++t) tokens.push_back(7 * t + i);
      items.push_back({.sequence = others[static_cast<std::size_t>(i)], .tokens = tokens});
    }
    std::vector<std::int32_t> prompt;
    for (int t = 0; t < 50; ++t) prompt.push_back(11 * t + 5);
    items.insert(items.begin() + company / 2,
                 {.sequence = own,
                  .tokens = s == 0 ? prompt : std::vector<std::int32_t>{s * 100},
                  .want = Want::logits});
    for (const BatchItem& item : items) {
      check(executor.kv().reserve(item.sequence, std::ssize(item.tokens)), "no pages");
    }
    auto results = executor.collect(executor.submit(std::move(items)));
    all.push_back(std::move(results[static_cast<std::size_t>(company / 2)].logits));
  }
  for (const SequenceId sequence : others) executor.kv().free(sequence);
  executor.kv().free(own);
  return all;
}

TEST(CudaGoldenOnGpu, a_deterministic_request_gets_the_same_bits_in_any_company) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  const auto weights = golden_model("gauntlet-tiny");
  const auto executor = gpu_executor(weights, {.cuda = {.determinism = Determinism::per_request}});
  const auto alone = logits_beside(*executor, 0);
  for (const int company : {1, 4, 7}) EXPECT_EQ(logits_beside(*executor, company), alone);
}

TEST(CudaGoldenOnGpu, every_switch_off_keeps_the_text) {
  GAUNTLET_NEEDS_CUDA_EXECUTOR();
  const std::pair<const char*, EngineOptions> switches[] = {
      {"naive attention", {.attention = AttentionKind::naive}},
      {"dequantised experts", {.experts = ExpertWeightsKind::dequantised}},
      {"plain loads", {.cuda = {.pipelines = Pipelines::plain}}},
      {"no graphs", {.cuda = {.graphs = Graphs::off}}},
      {"no overlap", {.cuda = {.dependent_launch = DependentLaunch::off}}},
      {"neither", {.cuda = {.graphs = Graphs::off, .dependent_launch = DependentLaunch::off}}},
      {"deterministic", {.cuda = {.determinism = Determinism::per_request}}},
  };
  for (const auto& [what, options] : switches) expect_golden_text("gauntlet-tiny", options, what);
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
