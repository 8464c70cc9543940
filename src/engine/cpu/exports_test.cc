// Do residuals and normed rows come back as a probe sees them, whoever asked and however many
// threads computed them?
#include "engine/export_cases.h"

namespace gauntlet::engine::cpu {
namespace {

std::unique_ptr<Executor> exporter(const model::ModelWeights& weights, const EngineOptions& options,
                                   const std::vector<int>& layers) {
  return std::move(
      make_cpu_executor(weights, {.options = options, .export_layers = layers}).value());
}

TEST(Exports, are_what_a_probe_sees_after_those_layers) {
  const auto weights = golden_model("gauntlet-tiny");
  const int last = static_cast<int>(weights.config.num_layers) - 1;
  for (const std::vector<int>& layers :
       {std::vector{last}, std::vector{0, last / 2, last - 1}, std::vector{0, 1, last}}) {
    for (const EngineOptions& options : {EngineOptions{.threads = 1}, EngineOptions{.threads = 3},
                                         EngineOptions{.threads = 2, .fusion = Fusion::op_by_op}}) {
      const auto executor = exporter(weights, options, layers);
      const auto steps = run_exporting(*executor);
      RoutingTape tape;
      tape.record(*executor);
      run_exporting(*executor);
      expect_exports(steps, tape.layers(), layers, weights, 1e-5f);
    }
  }
}

TEST(Exports, cost_a_step_nothing_where_nobody_asks) {
  const auto weights = golden_model("gauntlet-tiny");
  const auto executor = exporter(weights, {}, {0, 1});
  const auto plain = executor_for(weights, {});
  const auto results_of = [](Executor& one) {
    const SequenceId sequence = one.kv().create();
    ItemResult result = prefill(one, sequence, export_ids(3, 30), 7);
    one.kv().free(sequence);
    return result;
  };
  const ItemResult result = results_of(*executor);
  EXPECT_TRUE(result.residuals.empty());
  EXPECT_TRUE(result.normed.empty());
  EXPECT_EQ(result.logits, results_of(*plain).logits);
}

TEST(Exports, are_refused_where_no_layer_has_them) {
  const auto weights = golden_model("gauntlet-tiny");
  const auto plain = executor_for(weights, {});
  EXPECT_ANY_THROW(
      step(*plain, {.sequence = plain->kv().create(), .tokens = {1}, .exports = true}));
  const int depth = static_cast<int>(weights.config.num_layers);
  for (const std::vector<int>& layers : {std::vector{depth}, std::vector{-1}, std::vector{1, 1}}) {
    const auto made = make_cpu_executor(weights, {.export_layers = layers});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, ErrorKind::wrong_use);
  }
}

}  // namespace
}  // namespace gauntlet::engine::cpu
