#include <fmt/format.h>

#include "model/files/layouts.h"
#include "model/packed_experts.h"

namespace gauntlet::model::inline files {
namespace {

std::vector<ExpertWeights> bind_huggingface_experts(const ModelConfig& config,
                                                    const std::string& experts,
                                                    TensorBinder& bind) {
  if (bind.has(experts + "gate_up_proj")) {
    return bind_transposed_experts(config,
                                   {.gate_up = experts + "gate_up_proj",
                                    .gate_up_bias = experts + "gate_up_proj_bias",
                                    .down = experts + "down_proj",
                                    .down_bias = experts + "down_proj_bias"},
                                   bind);
  }
  return bind_mxfp4_experts(config,
                            {.gate_up_blocks = experts + "gate_up_proj_blocks",
                             .gate_up_scales = experts + "gate_up_proj_scales",
                             .gate_up_bias = experts + "gate_up_proj_bias",
                             .down_blocks = experts + "down_proj_blocks",
                             .down_scales = experts + "down_proj_scales",
                             .down_bias = experts + "down_proj_bias"},
                            bind);
}

LayerWeights bind_huggingface_layer(const ModelConfig& config, std::int64_t index,
                                    TensorBinder& bind) {
  const std::string layer = fmt::format("model.layers.{}.", index);
  const std::string attention = layer + "self_attn.";
  const std::string mlp = layer + "mlp.";
  const std::int64_t hidden = config.hidden;
  const std::int64_t query = config.query_width();
  const std::int64_t kv = config.kv_width();
  return {.attention_norm = bind.vector(layer + "input_layernorm.weight", {hidden}),
          .q = bind.matrix(attention + "q_proj.weight", {query, hidden}),
          .k = bind.matrix(attention + "k_proj.weight", {kv, hidden}),
          .v = bind.matrix(attention + "v_proj.weight", {kv, hidden}),
          .o = bind.matrix(attention + "o_proj.weight", {hidden, query}),
          .q_bias = bind.vector(attention + "q_proj.bias", {query}),
          .k_bias = bind.vector(attention + "k_proj.bias", {kv}),
          .v_bias = bind.vector(attention + "v_proj.bias", {kv}),
          .o_bias = bind.vector(attention + "o_proj.bias", {hidden}),
          .sinks = bind.vector(attention + "sinks", {config.num_heads}),
          .mlp_norm = bind.vector(layer + "post_attention_layernorm.weight", {hidden}),
          .router = bind.matrix(mlp + "router.weight", {config.num_experts, hidden}),
          .router_bias = bind.vector(mlp + "router.bias", {config.num_experts}),
          .experts = bind_huggingface_experts(config, mlp + "experts.", bind)};
}

}  // namespace

Expected<ModelWeights> bind_huggingface(const ModelConfig& config, const TensorTable& table) {
  TensorBinder bind(table);
  ModelWeights weights{.config = config, .file_bytes = table.total_bytes()};
  weights.embedding = bind.matrix("model.embed_tokens.weight", {config.vocab, config.hidden});
  weights.lm_head = config.tied_embeddings
                        ? weights.embedding
                        : bind.matrix("lm_head.weight", {config.vocab, config.hidden});
  weights.final_norm = bind.vector("model.norm.weight", {config.hidden});
  for (std::int64_t layer = 0; layer < config.num_layers && !bind.failed(); ++layer) {
    weights.layers.push_back(bind_huggingface_layer(config, layer, bind));
  }
  if (bind.failed()) return bind.error();
  return weights;
}

}  // namespace gauntlet::model::inline files
