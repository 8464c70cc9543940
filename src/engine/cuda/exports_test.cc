// Do residuals and normed rows come back from a GPU as a probe sees them, from graphs, too?
#include "engine/export_cases.h"
#include "engine/steps/cuda_executor.h"

namespace gauntlet::engine::cuda {
namespace {

/// Normed rows are rounded to bf16 before they are multiplied.
constexpr float kBf16 = 1.0f / 128;

std::unique_ptr<Executor> exporter(const model::ModelWeights& weights, const EngineOptions& options,
                                   const std::vector<int>& layers) {
  return std::move(make_cuda_executor(weights, {.options = options,
                                                .max_sequences = 4,
                                                .max_tokens = 1024,
                                                .max_batch_tokens = 512,
                                                .export_layers = layers})
                       .value());
}

TEST(ExportsOnGpu, are_what_a_probe_sees_after_those_layers) {
  if (const auto reason = no_cuda_executor_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const auto weights = golden_model("gauntlet-tiny");
  const int last = static_cast<int>(weights.config.num_layers) - 1;
  for (const std::vector<int>& layers : {std::vector{0, last / 2, last - 1}, std::vector{last}}) {
    for (const EngineOptions& options :
         {EngineOptions{}, EngineOptions{.fusion = Fusion::op_by_op},
          EngineOptions{.cuda = {.determinism = Determinism::per_request}}}) {
      // The probe's run has the same choices: where they are undecided, it is this run's that
      // count.
      const auto executor = exporter(weights, options, layers);
      RoutingTape tape;
      tape.record(*executor);
      const auto steps = run_exporting(*executor);
      if (options.cuda.determinism == Determinism::per_batch) {
        expect_exports(steps, tape.layers(), layers, weights, kBf16);
      }
      executor->watch(nullptr);
      const auto in_graphs = run_exporting(*executor);
      for (std::size_t s = 0; s < steps.size(); ++s) {
        for (const std::size_t item : {0, 2}) {
          EXPECT_EQ(in_graphs[s][item].residuals, steps[s][item].residuals) << "step " << s;
          EXPECT_EQ(in_graphs[s][item].normed, steps[s][item].normed) << "step " << s;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::cuda
