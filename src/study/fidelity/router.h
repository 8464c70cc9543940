// Which experts real text goes to: load per expert, imbalance, and who is chosen together.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/steps/layer_probe.h"
#include "study/bench/workbench.h"

namespace gauntlet::study::inline fidelity {

/// Counts what a watched executor chooses.
class RouterProbe final : public engine::LayerProbe {
 public:
  explicit RouterProbe(const model::ModelConfig& config);

  void routed(std::int64_t layer, std::span<std::int32_t> chosen,
              std::span<float> weights) override;
  void finished(std::int64_t, std::span<const float>) override {}

  std::int64_t tokens() const { return tokens_; }
  /// How often an expert of a layer was chosen.
  const std::vector<std::int64_t>& load(std::int64_t layer) const { return load_[layer]; }
  /// How often two were chosen for the same token: [experts, experts], symmetric, 0 on the
  /// diagonal.
  const std::vector<std::int64_t>& together(std::int64_t layer) const { return together_[layer]; }

 private:
  std::int64_t experts_;
  std::int64_t per_token_;
  std::int64_t tokens_ = 0;  // of the first layer
  std::vector<std::vector<std::int64_t>> load_;
  std::vector<std::vector<std::int64_t>> together_;
};

/// The busiest expert's load over the mean.
double imbalance(const std::vector<std::int64_t>& load);

struct RouterLoads {
  /// Of a model layer, how often two experts were chosen for the same token.
  struct Pairs {
    std::int64_t layer = 0;
    std::vector<std::int64_t> counts;  // [experts, experts]
  };

  std::int64_t tokens = 0;
  std::int64_t layers = 0;
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::vector<std::vector<std::int64_t>> load;  // [layers, experts]
  std::vector<double> imbalance;                // [layers]
  std::int64_t most_uneven_layer = 0;
  std::vector<Pairs> together;  // of all layers, or of the most uneven one alone
};
/// Runs the text through the executor and counts.
Expected<RouterLoads> study_router(const Workbench& bench, engine::Executor& executor,
                                   std::span<const std::int32_t> text);

}  // namespace gauntlet::study::inline fidelity
