#include <fmt/format.h>

#include "model/files/layouts.h"

namespace gauntlet::model::inline files {
namespace {

Vector row_of(const Vector& all, std::int64_t row, std::int64_t width) {
  return {all.begin() + row * width, all.begin() + (row + 1) * width};
}

std::vector<ExpertWeights> bind_gguf_experts(const ModelConfig& config, const std::string& layer,
                                             TensorBinder& bind) {
  const std::int64_t count = config.num_experts;
  const std::int64_t hidden = config.hidden, intermediate = config.intermediate;
  const Matrix gate = bind.matrix(layer + "ffn_gate_exps.weight", {count, intermediate, hidden});
  const Matrix up = bind.matrix(layer + "ffn_up_exps.weight", {count, intermediate, hidden});
  const Matrix down = bind.matrix(layer + "ffn_down_exps.weight", {count, hidden, intermediate});
  const Vector gate_bias = bind.vector(layer + "ffn_gate_exps.bias", {count, intermediate});
  const Vector up_bias = bind.vector(layer + "ffn_up_exps.bias", {count, intermediate});
  const Vector down_bias = bind.vector(layer + "ffn_down_exps.bias", {count, hidden});
  std::vector<ExpertWeights> experts;
  for (std::int64_t e = 0; e < count && !bind.failed(); ++e) {
    experts.push_back({.gate = rows_of(gate, e * intermediate, intermediate),
                       .up = rows_of(up, e * intermediate, intermediate),
                       .down = rows_of(down, e * hidden, hidden),
                       .gate_bias = row_of(gate_bias, e, intermediate),
                       .up_bias = row_of(up_bias, e, intermediate),
                       .down_bias = row_of(down_bias, e, hidden)});
  }
  return experts;
}

LayerWeights bind_gguf_layer(const ModelConfig& config, std::int64_t index, TensorBinder& bind) {
  const std::string layer = fmt::format("blk.{}.", index);
  const std::int64_t hidden = config.hidden;
  const std::int64_t query = config.query_width();
  const std::int64_t kv = config.kv_width();
  return {.attention_norm = bind.vector(layer + "attn_norm.weight", {hidden}),
          .q = bind.matrix(layer + "attn_q.weight", {query, hidden}),
          .k = bind.matrix(layer + "attn_k.weight", {kv, hidden}),
          .v = bind.matrix(layer + "attn_v.weight", {kv, hidden}),
          .o = bind.matrix(layer + "attn_output.weight", {hidden, query}),
          .q_bias = bind.vector(layer + "attn_q.bias", {query}),
          .k_bias = bind.vector(layer + "attn_k.bias", {kv}),
          .v_bias = bind.vector(layer + "attn_v.bias", {kv}),
          .o_bias = bind.vector(layer + "attn_output.bias", {hidden}),
          .sinks = bind.vector(layer + "attn_sinks.weight", {config.num_heads}),
          .mlp_norm = bind.vector(layer + "post_attention_norm.weight", {hidden}),
          .router = bind.matrix(layer + "ffn_gate_inp.weight", {config.num_experts, hidden}),
          .router_bias = bind.vector(layer + "ffn_gate_inp.bias", {config.num_experts}),
          .experts = bind_gguf_experts(config, layer, bind)};
}

}  // namespace

Expected<ModelWeights> bind_gguf(const ModelConfig& config, const TensorTable& table) {
  TensorBinder bind(table);
  ModelWeights weights{.config = config, .file_bytes = table.total_bytes()};
  weights.embedding = bind.matrix("token_embd.weight", {config.vocab, config.hidden});
  weights.config.tied_embeddings = !bind.has("output.weight");
  weights.lm_head = weights.config.tied_embeddings
                        ? weights.embedding
                        : bind.matrix("output.weight", {config.vocab, config.hidden});
  weights.final_norm = bind.vector("output_norm.weight", {config.hidden});
  for (std::int64_t layer = 0; layer < config.num_layers && !bind.failed(); ++layer) {
    weights.layers.push_back(bind_gguf_layer(config, layer, bind));
  }
  if (bind.failed()) return bind.error();
  return weights;
}

}  // namespace gauntlet::model::inline files
