// A small model, and what a way of computing its layers must give: the scalar residuals within
// rounding, and the bits of another way.
#pragma once
#include "engine/cpu/scalar_layers.h"
#include "engine/golden.h"
#include "engine/steps/routing_tape.h"
#include "model/weights.h"

namespace gauntlet::engine::cpu {

/// A sliding and a full layer, a window that is passed, groups of two heads, odd numbers of rows.
inline const model::ModelWeights& small_model() {
  static const model::ModelWeights weights =
      model::random_model({.name = "small",
                           .num_layers = 2,
                           .hidden = 96,
                           .intermediate = 64,
                           .num_heads = 4,
                           .num_kv_heads = 2,
                           .head_dim = 32,
                           .num_experts = 5,
                           .experts_per_token = 2,
                           .vocab = 203,
                           .max_positions = 256,
                           .sliding_window = 16,
                           .attention = model::alternating_attention(2)},
                          11);
  return weights;
}

inline std::vector<std::int32_t> small_ids() {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 37; ++i) ids.push_back(i * 29 % 203);
  return ids;
}

/// Residuals after each layer, [layers][tokens * hidden], as a probe sees them in chunks; or as
/// they are exported, with nobody watching, which takes the ways that a probe closes.
inline std::vector<std::vector<float>> residuals_of(const EngineOptions& options,
                                                    std::int64_t chunk) {
  const auto executor = std::move(
      make_cpu_executor(
          small_model(),
          {.options = options, .max_sequences = 1, .max_tokens = 256, .export_layers = {0, 1}})
          .value());
  const auto ids = small_ids();
  const SequenceId sequence = executor->kv().create();
  std::vector<std::vector<float>> all(2);
  for (std::int64_t at = 0; at < std::ssize(ids); at += chunk) {
    const std::int64_t end = std::min<std::int64_t>(at + chunk, std::ssize(ids));
    const auto result = step(
        *executor,
        {.sequence = sequence, .tokens = {ids.begin() + at, ids.begin() + end}, .exports = true});
    const auto half = std::ssize(result.residuals) / 2;
    all[0].insert(all[0].end(), result.residuals.begin(), result.residuals.begin() + half);
    all[1].insert(all[1].end(), result.residuals.begin() + half, result.residuals.end());
  }
  return all;
}

inline void expect_scalar(const std::vector<std::vector<float>>& got) {
  static const auto wanted = ScalarLayers(small_model()).run(small_ids());
  for (std::size_t l = 0; l < wanted.size(); ++l) {
    ASSERT_EQ(got[l].size(), wanted[l].size());
    for (std::size_t i = 0; i < wanted[l].size(); ++i) {
      ASSERT_NEAR(got[l][i], wanted[l][i], 1e-4 * std::max(1.0, std::abs(wanted[l][i])))
          << "layer " << l << ", token " << i / 96;
    }
  }
}

}  // namespace gauntlet::engine::cpu
