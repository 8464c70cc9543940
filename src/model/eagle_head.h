// A draft head in EAGLE-3's published layout: one layer that goes on from what its target model
// computed, and its own output head over the tokens that are drafted often.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/weights.h"

namespace gauntlet::model {

struct EagleHeadConfig {
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;  // the target's
  std::int64_t draft_vocab = 0;
  double rms_epsilon = 1e-5;
  double rope_theta = 1e4;
  /// Residuals of the target that go in: after so many of its layers, before any norm.
  std::vector<std::int64_t> boundaries;
  bool norm_before_fc = false;        // the joined residuals are normed before they are projected
  bool norm_before_residual = false;  // the layer adds to its normed input, not to the plain one

  /// Those layers, counted from 0.
  std::vector<int> export_layers() const;
  std::int64_t features() const { return std::ssize(boundaries) * hidden; }
};

struct EagleHead {
  EagleHeadConfig config;
  Matrix fc;          // [hidden, features]
  Vector fc_norm;     // [features]; none without norm_before_fc
  Vector input_norm;  // [hidden], of the embedding
  Vector hidden_norm;
  Matrix q, k, v;  // [.., 2 * hidden]: embedding, then feature
  Matrix o;
  Vector mlp_norm;
  Matrix gate, up, down;
  Vector final_norm;
  Matrix lm_head;                        // [draft_vocab, hidden]
  std::optional<Matrix> embedding;       // [vocab, hidden]; none: the target's
  std::vector<std::int32_t> target_ids;  // of each draft id
  std::shared_ptr<WeightStorage> storage;
};

/// A head's config.json, flat or as speculators writes it.
Expected<EagleHeadConfig> parse_eagle_config(std::string_view text, std::string_view where);

/// The head in these files, for a target of this shape. Everything is checked; an error names file
/// and field.
Expected<EagleHead> load_eagle_head(const ModelFiles& files, const ModelConfig& target);

/// Deterministic random weights of the size that heads published for gpt-oss have beside their
/// target's. They take no memory.
EagleHead random_eagle_head(const ModelConfig& target, std::uint64_t seed);

}  // namespace gauntlet::model
