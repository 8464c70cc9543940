#include <fmt/format.h>

#include "model/files/layouts.h"
#include "model/packed_experts.h"

namespace gauntlet::model::inline files {
namespace {

Vector part_of(const Vector& all, std::int64_t first, std::int64_t count) {
  if (all.empty()) return {};  // of a tensor that was refused
  return {all.begin() + first, all.begin() + first + count};
}

LayerWeights bind_original_layer(const ModelConfig& config, std::int64_t index,
                                 TensorBinder& bind) {
  const std::string attention = fmt::format("block.{}.attn.", index);
  const std::string mlp = fmt::format("block.{}.mlp.", index);
  const std::int64_t hidden = config.hidden;
  const std::int64_t query = config.query_width();
  const std::int64_t kv = config.kv_width();
  const Matrix qkv = bind.matrix(attention + "qkv.weight", {query + 2 * kv, hidden});
  const Vector qkv_bias = bind.vector(attention + "qkv.bias", {query + 2 * kv});
  return {.attention_norm = bind.vector(attention + "norm.scale", {hidden}),
          .q = rows_of(qkv, 0, query),
          .k = rows_of(qkv, query, kv),
          .v = rows_of(qkv, query + kv, kv),
          .o = bind.matrix(attention + "out.weight", {hidden, query}),
          .q_bias = part_of(qkv_bias, 0, query),
          .k_bias = part_of(qkv_bias, query, kv),
          .v_bias = part_of(qkv_bias, query + kv, kv),
          .o_bias = bind.vector(attention + "out.bias", {hidden}),
          .sinks = bind.vector(attention + "sinks", {config.num_heads}),
          .mlp_norm = bind.vector(mlp + "norm.scale", {hidden}),
          .router = bind.matrix(mlp + "gate.weight", {config.num_experts, hidden}),
          .router_bias = bind.vector(mlp + "gate.bias", {config.num_experts}),
          .experts = bind_mxfp4_experts(config,
                                        {.gate_up_blocks = mlp + "mlp1_weight.blocks",
                                         .gate_up_scales = mlp + "mlp1_weight.scales",
                                         .gate_up_bias = mlp + "mlp1_bias",
                                         .down_blocks = mlp + "mlp2_weight.blocks",
                                         .down_scales = mlp + "mlp2_weight.scales",
                                         .down_bias = mlp + "mlp2_bias"},
                                        bind)};
}

}  // namespace

Expected<ModelWeights> bind_original(const ModelConfig& config, const TensorTable& table) {
  TensorBinder bind(table);
  ModelWeights weights{.config = config, .file_bytes = table.total_bytes()};
  weights.embedding = bind.matrix("embedding.weight", {config.vocab, config.hidden});
  weights.lm_head = bind.matrix("unembedding.weight", {config.vocab, config.hidden});
  weights.final_norm = bind.vector("norm.scale", {config.hidden});
  for (std::int64_t layer = 0; layer < config.num_layers && !bind.failed(); ++layer) {
    weights.layers.push_back(bind_original_layer(config, layer, bind));
  }
  if (bind.failed()) return bind.error();
  return weights;
}

}  // namespace gauntlet::model::inline files
