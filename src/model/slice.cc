#include "model/slice.h"

#include <algorithm>

#include "core/check.h"
#include "model/tensor.h"

namespace gauntlet::model {
namespace {

Matrix rows_in(const Matrix& matrix, const Range& range, std::int64_t per_unit = 1) {
  return rows_of(matrix, range.begin * per_unit, range.size() * per_unit);
}

Vector numbers_in(const Vector& values, const Range& range, std::int64_t per_unit = 1) {
  check(range.end * per_unit <= std::ssize(values), "a part lies inside its vector");
  return {values.begin() + range.begin * per_unit, values.begin() + range.end * per_unit};
}

Matrix product_of_parts(const Matrix& matrix, const Slice& slice, const Range& inputs,
                        std::int64_t per_input, const Range& outputs) {
  if (slice.cut == Cut::outputs) return rows_in(matrix, outputs);
  return columns_of(matrix, inputs.begin * per_input, inputs.size() * per_input);
}

Vector bias_of_parts(const Vector& bias, const Slice& slice, const Range& outputs, bool adds) {
  if (slice.cut == Cut::outputs) return numbers_in(bias, outputs);
  return adds ? bias : Vector(bias.size(), 0.0f);
}

ExpertWeights part_of(const ExpertWeights& expert, const Slice& slice) {
  return {.gate = rows_in(expert.gate, slice.intermediate),
          .up = rows_in(expert.up, slice.intermediate),
          .down = product_of_parts(expert.down, slice, slice.intermediate, 1, slice.down_outputs),
          .gate_bias = numbers_in(expert.gate_bias, slice.intermediate),
          .up_bias = numbers_in(expert.up_bias, slice.intermediate),
          .down_bias =
              bias_of_parts(expert.down_bias, slice, slice.down_outputs, slice.adds_down_bias)};
}

LayerWeights part_of(const LayerWeights& layer, const Slice& slice, std::int64_t head_dim) {
  LayerWeights part{
      .attention_norm = layer.attention_norm,
      .q = rows_in(layer.q, slice.heads, head_dim),
      .k = rows_in(layer.k, slice.kv_heads, head_dim),
      .v = rows_in(layer.v, slice.kv_heads, head_dim),
      .o = product_of_parts(layer.o, slice, slice.heads, head_dim, slice.o_outputs),
      .q_bias = numbers_in(layer.q_bias, slice.heads, head_dim),
      .k_bias = numbers_in(layer.k_bias, slice.kv_heads, head_dim),
      .v_bias = numbers_in(layer.v_bias, slice.kv_heads, head_dim),
      .o_bias = bias_of_parts(layer.o_bias, slice, slice.o_outputs, slice.adds_o_bias),
      .sinks = numbers_in(layer.sinks, slice.heads),
      .mlp_norm = layer.mlp_norm,
      .router = layer.router,
      .router_bias = layer.router_bias,
      .experts = {}};
  part.experts.resize(layer.experts.size());
  for (std::int64_t e = slice.experts.begin; e < slice.experts.end; ++e) {
    const auto index = static_cast<std::size_t>(e);
    part.experts[index] = part_of(layer.experts[index], slice);
  }
  return part;
}

std::int64_t bytes_of(const Matrix& matrix) { return matrix.rows * matrix.row_bytes(); }
/// Files have them as bf16.
std::int64_t bytes_of(const Vector& values) { return std::ssize(values) * 2; }

}  // namespace

Slice whole_slice(const ModelConfig& config) {
  return {.layers = {0, config.num_layers},
          .heads = {0, config.num_heads},
          .kv_heads = {0, config.num_kv_heads},
          .experts = {0, config.num_experts},
          .intermediate = {0, config.intermediate},
          .vocab = {0, config.vocab},
          .o_outputs = {0, config.hidden},
          .down_outputs = {0, config.hidden}};
}

ModelWeights slice_weights(const ModelWeights& weights, const Slice& slice) {
  ModelWeights part{.config = weights.config,
                    .embedding = weights.embedding,
                    .lm_head = rows_in(weights.lm_head, slice.vocab),
                    .final_norm = weights.final_norm,
                    .layers = {},
                    .storage = weights.storage,
                    .file_bytes = 0};
  ModelConfig& config = part.config;
  config.num_layers = slice.layers.size();
  config.num_heads = slice.heads.size();
  config.num_kv_heads = slice.kv_heads.size();
  config.intermediate = slice.intermediate.size();
  config.attention.assign(weights.config.attention.begin() + slice.layers.begin,
                          weights.config.attention.begin() + slice.layers.end);
  for (std::int64_t l = slice.layers.begin; l < slice.layers.end; ++l) {
    part.layers.push_back(
        part_of(weights.layers[static_cast<std::size_t>(l)], slice, weights.config.head_dim));
  }
  part.file_bytes = stored_bytes(part);
  return part;
}

std::int64_t stored_bytes(const ModelWeights& weights) {
  std::int64_t bytes = bytes_of(weights.embedding) + bytes_of(weights.final_norm);
  if (!weights.config.tied_embeddings) bytes += bytes_of(weights.lm_head);
  for (const LayerWeights& layer : weights.layers) {
    for (const Matrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.router}) {
      bytes += bytes_of(*matrix);
    }
    for (const Vector* values :
         {&layer.attention_norm, &layer.q_bias, &layer.k_bias, &layer.v_bias, &layer.o_bias,
          &layer.sinks, &layer.mlp_norm, &layer.router_bias}) {
      bytes += bytes_of(*values);
    }
    for (const ExpertWeights& expert : layer.experts) {
      bytes += bytes_of(expert.gate) + bytes_of(expert.up) + bytes_of(expert.down) +
               bytes_of(expert.gate_bias) + bytes_of(expert.up_bias) + bytes_of(expert.down_bias);
    }
  }
  return bytes;
}

}  // namespace gauntlet::model
