// Does the engine compute what Hugging Face's implementation computes, however it is run?
#include "engine/golden.h"

#include <cmath>
#include <map>

namespace gauntlet::engine {
namespace {

using kernels::cpu::SimdLevel;

TEST(Golden, logits_and_choices_match_on_gauntlet_tiny) {
  const auto weights = golden_model("gauntlet-tiny");
  const auto executor = executor_for(weights, {});
  for (const GoldenCase& golden : golden_cases("gauntlet-tiny")) {
    expect_golden(*executor, golden, 512);
  }
}

TEST(Golden, logits_and_choices_match_on_gauntlet_draft) {
  const auto weights = golden_model("gauntlet-draft");
  const auto executor = executor_for(weights, {});
  for (const GoldenCase& golden : golden_cases("gauntlet-draft")) {
    expect_golden(*executor, golden, 512);
  }
}

TEST(Golden, mean_log_probability_of_the_prompts_matches) {
  for (const std::string name : {"gauntlet-tiny", "gauntlet-draft"}) {
    const auto weights = golden_model(name);
    const auto executor = executor_for(weights, {});
    for (const GoldenCase& golden : golden_cases(name)) {
      const auto log_probs = score(*executor, golden.ids);
      double sum = 0;
      for (const double value : log_probs) sum += value;
      EXPECT_NEAR(sum / static_cast<double>(log_probs.size()), golden.mean_log_prob, 1e-5);
    }
  }
}

/// The ways of running that must not matter, by number of a value of each.
struct Way {
  SimdLevel simd;
  int threads;
  std::int64_t chunk;
  bool company;
  FileKind file;

  std::string name() const {
    std::string text = std::string(kernels::cpu::name_of(simd)) + "_" + std::to_string(threads) +
                       "_threads_chunk_" + std::to_string(chunk) + (company ? "_in_company" : "") +
                       (file == FileKind::gguf ? "_from_gguf" : "");
    for (char& c : text) c = c == '-' ? '_' : c;
    return text;
  }
};
constexpr int kThreads[] = {1, 2, 4};
constexpr std::int64_t kChunks[] = {512, 1, 7, 64, 333};

/// Every pair of values of two dimensions appears in some way.
std::vector<Way> pairwise_ways() {
  const auto levels = kernels::cpu::available_levels();
  std::vector<Way> ways;
  for (std::size_t b = 0; b < std::size(kChunks); ++b) {
    for (std::size_t a = 0; a < std::max<std::size_t>(levels.size(), 3); ++a) {
      ways.push_back({levels[a % levels.size()], kThreads[(a + b) % 3], kChunks[b],
                      (a + b / 2) % 2 == 1,
                      (b + a / 2) % 2 == 1 ? FileKind::gguf : FileKind::safetensors});
    }
  }
  return ways;
}

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const SimdLevel level : kernels::cpu::available_levels()) {
    for (const int threads : kThreads) {
      for (const std::int64_t chunk : kChunks) {
        for (const bool company : {false, true}) {
          for (const FileKind file : {FileKind::safetensors, FileKind::gguf}) {
            ways.push_back({level, threads, chunk, company, file});
          }
        }
      }
    }
  }
  return ways;
}

/// Another sequence that takes part in every step, where the way asks for it.
class Companion : public Executor {
 public:
  explicit Companion(Executor& inner) : inner_(inner), sequence_(inner.kv().create()) {}
  const model::ModelConfig& config() const override { return inner_.config(); }
  const Plan& plan() const override { return inner_.plan(); }
  KvPool& kv() override { return inner_.kv(); }
  std::int64_t max_batch_tokens() const override { return inner_.max_batch_tokens() - 3; }
  StepTraffic last_traffic() const override { return inner_.last_traffic(); }
  void watch(LayerProbe* probe) override { inner_.watch(probe); }
  std::int64_t weight_bytes() const override { return inner_.weight_bytes(); }
  Ticket submit(std::vector<BatchItem> items) override {
    if (kv().length(sequence_) > 1000) {
      kv().free(sequence_);
      sequence_ = kv().create();
    }
    check(kv().reserve(sequence_, 3), "no pages for company");
    items.insert(items.begin(), {.sequence = sequence_, .tokens = {17, 4000, 256}});
    return inner_.submit(std::move(items));
  }
  std::vector<ItemResult> collect(Ticket ticket) override {
    auto results = inner_.collect(ticket);
    results.erase(results.begin());
    return results;
  }

 private:
  Executor& inner_;
  SequenceId sequence_;
};

void expect_golden_by(const Way& way, std::size_t longest) {
  const auto weights = golden_model("gauntlet-tiny", way.file);
  const auto executor = executor_for(weights, {.simd = way.simd, .threads = way.threads});
  Companion companion(*executor);
  Executor& runs = way.company ? companion : *executor;
  for (const GoldenCase& golden : golden_cases("gauntlet-tiny")) {
    if (golden.ids.size() > longest) continue;
    expect_golden(runs, golden, std::min(way.chunk, runs.max_batch_tokens()));
  }
}

class GoldenPairwise : public testing::TestWithParam<Way> {};
TEST_P(GoldenPairwise, matches_however_it_is_run) { expect_golden_by(GetParam(), 210); }
INSTANTIATE_TEST_SUITE_P(Ways, GoldenPairwise, testing::ValuesIn(pairwise_ways()),
                         [](const auto& way) {
                           return std::to_string(way.index) + "_" + way.param.name();
                         });

/// Every combination and every prompt; takes minutes.
class SlowGoldenProduct : public testing::TestWithParam<Way> {};
TEST_P(SlowGoldenProduct, matches_however_it_is_run) { expect_golden_by(GetParam(), 100000); }
INSTANTIATE_TEST_SUITE_P(Ways, SlowGoldenProduct, testing::ValuesIn(all_ways()),
                         [](const auto& way) { return way.param.name(); });

class GoldenOptions : public testing::TestWithParam<EngineOptions> {};
TEST_P(GoldenOptions, every_switch_off_gives_the_same_choices) {
  const auto weights = golden_model("gauntlet-tiny");
  const auto executor = executor_for(weights, GetParam());
  for (const GoldenCase& golden : golden_cases("gauntlet-tiny")) {
    if (golden.ids.size() <= 653) expect_golden(*executor, golden, 512);
  }
}
INSTANTIATE_TEST_SUITE_P(Switches, GoldenOptions,
                         testing::Values(EngineOptions{.fusion = Fusion::op_by_op},
                                         EngineOptions{.attention = AttentionKind::naive},
                                         EngineOptions{.experts = ExpertWeightsKind::dequantised},
                                         EngineOptions{.fusion = Fusion::op_by_op,
                                                       .attention = AttentionKind::naive}));

/// Perplexity of the first windows of the validation text, by kind of activations.
TEST(Golden, rounding_stays_within_half_a_percent_of_the_exact_perplexity) {
  const auto weights = golden_model("gauntlet-tiny");
  const auto cases = golden_cases("gauntlet-tiny");
  std::map<Activations, double> means;
  for (const Activations kind : {Activations::f32, Activations::int8, Activations::automatic}) {
    const auto executor = executor_for(weights, {.activations = kind});
    double sum = 0;
    std::size_t count = 0;
    for (const GoldenCase& golden : cases) {
      for (const double value : score(*executor, golden.ids)) sum += value, ++count;
    }
    means[kind] = sum / static_cast<double>(count);
  }
  const double exact = means[Activations::f32];
  EXPECT_NEAR(std::exp(exact - means[Activations::int8]), 1.0, 0.005);
  EXPECT_NEAR(std::exp(exact - means[Activations::automatic]), 1.0, 0.005);
}

}  // namespace
}  // namespace gauntlet::engine
