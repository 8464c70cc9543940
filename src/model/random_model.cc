// A whole model of random weights: a key for each matrix, and the few vectors.
#include "core/check.h"
#include "core/random.h"
#include "model/weights.h"

namespace gauntlet::model {
namespace {

enum class Role : std::uint64_t {
  embedding,
  lm_head,
  q,
  k,
  v,
  o,
  router,
  gate,
  up,
  down,
  q_bias,
  k_bias,
  v_bias,
  o_bias,
  router_bias,
  gate_bias,
  up_bias,
  down_bias,
  sinks,
};

class Maker {
 public:
  Maker(const ModelConfig& config, std::uint64_t seed) : config_(config), random_(seed) {}

  ModelWeights model() {
    ModelWeights weights{.config = config_};
    weights.embedding = matrix(Role::embedding, WeightType::bf16, config_.vocab, config_.hidden);
    weights.lm_head = config_.tied_embeddings
                          ? weights.embedding
                          : matrix(Role::lm_head, WeightType::bf16, config_.vocab, config_.hidden);
    weights.final_norm = ones(config_.hidden);
    for (std::int64_t i = 0; i < config_.num_layers; ++i) weights.layers.push_back(layer(i));
    weights.file_bytes = bytes_;
    return weights;
  }

 private:
  /// One number per tensor, the same whatever the counts of layers and experts are.
  std::uint64_t key(Role role) const {
    return random_.bits(static_cast<std::uint64_t>(layer_) << 40 |
                        static_cast<std::uint64_t>(expert_) << 8 |
                        static_cast<std::uint64_t>(role));
  }

  Matrix matrix(Role role, WeightType type, std::int64_t rows, std::int64_t cols) {
    const Matrix made{.type = type, .rows = rows, .cols = cols, .random_key = key(role)};
    bytes_ += rows * made.row_bytes();
    return made;
  }

  /// Small numbers, exact in bf16, which is what they count as in a file.
  Vector vector(Role role, std::int64_t count) {
    constexpr std::int64_t kWide = 1000;  // as the rows of a matrix this wide: about 0.03
    Vector values(static_cast<std::size_t>((count + kWide - 1) / kWide * kWide));
    const Matrix made{.rows = count, .cols = kWide, .random_key = key(role)};
    for (std::int64_t at = 0; at < count; at += kWide)
      made.read_row(at / kWide, &values[static_cast<std::size_t>(at)]);
    values.resize(static_cast<std::size_t>(count));
    bytes_ += 2 * count;
    return values;
  }

  Vector ones(std::int64_t count) {
    bytes_ += 2 * count;
    return Vector(static_cast<std::size_t>(count), 1.f);
  }

  ExpertWeights expert(std::int64_t index) {
    expert_ = index;
    const std::int64_t hidden = config_.hidden, intermediate = config_.intermediate;
    return {.gate = matrix(Role::gate, WeightType::mxfp4, intermediate, hidden),
            .up = matrix(Role::up, WeightType::mxfp4, intermediate, hidden),
            .down = matrix(Role::down, WeightType::mxfp4, hidden, intermediate),
            .gate_bias = vector(Role::gate_bias, intermediate),
            .up_bias = vector(Role::up_bias, intermediate),
            .down_bias = vector(Role::down_bias, hidden)};
  }

  LayerWeights layer(std::int64_t index) {
    layer_ = index + 1;  // 0 is outside all layers
    expert_ = 0;
    const std::int64_t hidden = config_.hidden;
    const std::int64_t query = config_.query_width(), kv = config_.kv_width();
    LayerWeights made{.attention_norm = ones(hidden),
                      .q = matrix(Role::q, WeightType::bf16, query, hidden),
                      .k = matrix(Role::k, WeightType::bf16, kv, hidden),
                      .v = matrix(Role::v, WeightType::bf16, kv, hidden),
                      .o = matrix(Role::o, WeightType::bf16, hidden, query),
                      .q_bias = vector(Role::q_bias, query),
                      .k_bias = vector(Role::k_bias, kv),
                      .v_bias = vector(Role::v_bias, kv),
                      .o_bias = vector(Role::o_bias, hidden),
                      .sinks = vector(Role::sinks, config_.num_heads),
                      .mlp_norm = ones(hidden),
                      .router = matrix(Role::router, WeightType::bf16, config_.num_experts, hidden),
                      .router_bias = vector(Role::router_bias, config_.num_experts)};
    for (std::int64_t e = 0; e < config_.num_experts; ++e) made.experts.push_back(expert(e));
    return made;
  }

  const ModelConfig& config_;
  Random random_;
  std::int64_t layer_ = 0;
  std::int64_t expert_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace

ModelWeights random_model(const ModelConfig& config, std::uint64_t seed) {
  check(config.hidden % 32 == 0 && config.intermediate % 32 == 0,
        "random experts are MXFP4, whose rows are made of blocks of 32");
  return Maker(config, seed).model();
}

}  // namespace gauntlet::model
