#include "study/fidelity/router.h"

#include <algorithm>
#include <numeric>

#include "engine/measure/score.h"

namespace gauntlet::study::inline fidelity {
namespace {

/// Above this many numbers, who goes with whom is kept for the most uneven layer alone.
constexpr std::int64_t kMostPairs = 50'000;
constexpr std::int64_t kWindow = 256;

/// Watches an executor for as long as it lives.
class Watch {
 public:
  Watch(engine::Executor& executor, engine::LayerProbe& probe) : executor_(executor) {
    executor.watch(&probe);
  }
  ~Watch() { executor_.watch(nullptr); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  engine::Executor& executor_;
};

}  // namespace

RouterProbe::RouterProbe(const model::ModelConfig& config)
    : experts_(config.num_experts),
      per_token_(config.experts_per_token),
      load_(config.num_layers, std::vector<std::int64_t>(config.num_experts)),
      together_(config.num_layers,
                std::vector<std::int64_t>(config.num_experts * config.num_experts)) {}

void RouterProbe::routed(std::int64_t layer, std::span<std::int32_t> chosen, std::span<float>) {
  auto& load = load_[layer];
  auto& together = together_[layer];
  const std::int64_t tokens = std::ssize(chosen) / per_token_;
  if (layer == 0) tokens_ += tokens;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto own = chosen.subspan(t * per_token_, per_token_);
    for (const std::int32_t a : own) {
      ++load[a];
      for (const std::int32_t b : own) together[a * experts_ + b] += a != b;
    }
  }
}

double imbalance(const std::vector<std::int64_t>& load) {
  const auto all = std::accumulate(load.begin(), load.end(), std::int64_t{0});
  if (all == 0) return 0;
  return static_cast<double>(std::ranges::max(load) * std::ssize(load)) / static_cast<double>(all);
}

Expected<RouterLoads> study_router(const Workbench& bench, engine::Executor& executor,
                                   std::span<const std::int32_t> text) {
  RouterProbe probe(bench.model());
  {
    const Watch watch(executor, probe);
    const auto scored = engine::score_tokens(executor, text, {.window = kWindow});
    if (!scored) return scored.error();
  }
  RouterLoads loads{.tokens = probe.tokens(),
                    .layers = bench.model().num_layers,
                    .experts = bench.model().num_experts,
                    .experts_per_token = bench.model().experts_per_token};
  for (std::int64_t l = 0; l < loads.layers; ++l) {
    loads.load.push_back(probe.load(l));
    loads.imbalance.push_back(imbalance(probe.load(l)));
  }
  loads.most_uneven_layer = std::ranges::max_element(loads.imbalance) - loads.imbalance.begin();
  const bool all = loads.layers * loads.experts * loads.experts <= kMostPairs;
  for (std::int64_t l = 0; l < loads.layers; ++l) {
    if (!all && l != loads.most_uneven_layer) continue;
    loads.together.push_back({.layer = l, .counts = probe.together(l)});
  }
  return loads;
}

}  // namespace gauntlet::study::inline fidelity
