// The layers of a model as its definition has them: one token after the other, in float64, every
// weight read where it lies. What the layers of this folder are judged by.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/steps/rope.h"
#include "kernels/ref/ops.h"
#include "model/weights.h"

namespace gauntlet::engine::cpu {

class ScalarLayers {
 public:
  explicit ScalarLayers(const model::ModelWeights& weights) : weights_(weights) {}

  /// The residual after each layer, [layers][tokens * hidden], of tokens that begin a sequence.
  std::vector<std::vector<double>> run(const std::vector<std::int32_t>& ids) const {
    std::vector<Row> x;
    for (const std::int32_t id : ids) x.push_back(row_of(weights_.embedding, id));
    std::vector<std::vector<double>> after;
    for (std::size_t l = 0; l < weights_.layers.size(); ++l) {
      attend(weights_.layers[l], weights_.config.attention[l], x);
      for (Row& row : x) add_experts(weights_.layers[l], row);
      after.emplace_back();
      for (const Row& row : x) after.back().insert(after.back().end(), row.begin(), row.end());
    }
    return after;
  }

 private:
  using Row = std::vector<double>;

  static Row row_of(const model::Matrix& matrix, std::int64_t row) {
    std::vector<float> values(static_cast<std::size_t>(matrix.cols));
    matrix.read_row(row, values.data());
    return {values.begin(), values.end()};
  }
  static Row product(const model::Matrix& matrix, const Row& x, const model::Vector& bias) {
    Row out;
    for (std::int64_t r = 0; r < matrix.rows; ++r) {
      const Row weights = row_of(matrix, r);
      double sum = bias[static_cast<std::size_t>(r)];
      for (std::size_t c = 0; c < x.size(); ++c) sum += weights[c] * x[c];
      out.push_back(sum);
    }
    return out;
  }
  Row normed(const Row& x, const model::Vector& weight) const {
    return kernels::ref::rms_norm(x, Row(weight.begin(), weight.end()),
                                  weights_.config.rms_epsilon);
  }
  void turn(Row& heads, std::int64_t position) const {
    const Rope rope(weights_.config);
    const auto half = static_cast<std::size_t>(rope.half());
    std::vector<float> cos(half), sin(half);
    rope.angles(position, cos.data(), sin.data());
    for (std::size_t first = 0; first < heads.size(); first += 2 * half) {
      for (std::size_t i = 0; i < half; ++i) {
        const double a = heads[first + i], b = heads[first + half + i];
        heads[first + i] = a * cos[i] - b * sin[i];
        heads[first + half + i] = b * cos[i] + a * sin[i];
      }
    }
  }

  void attend(const model::LayerWeights& layer, model::AttentionSpan span,
              std::vector<Row>& x) const {
    const model::ModelConfig& config = weights_.config;
    const auto dim = static_cast<std::size_t>(config.head_dim);
    const auto heads = static_cast<std::size_t>(config.num_heads);
    const auto per_kv = heads / static_cast<std::size_t>(config.num_kv_heads);
    std::vector<Row> keys(heads / per_kv), values(keys.size());
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Row in = normed(x[t], layer.attention_norm);
      Row q = product(layer.q, in, layer.q_bias), k = product(layer.k, in, layer.k_bias);
      const Row v = product(layer.v, in, layer.v_bias);
      turn(q, static_cast<std::int64_t>(t));
      turn(k, static_cast<std::int64_t>(t));
      for (double& value : q) value /= std::sqrt(static_cast<double>(dim));
      for (std::size_t h = 0; h < keys.size(); ++h) {
        const auto at = static_cast<std::ptrdiff_t>(h * dim);
        keys[h].insert(keys[h].end(), k.begin() + at, k.begin() + at + config.head_dim);
        values[h].insert(values[h].end(), v.begin() + at, v.begin() + at + config.head_dim);
      }
      Row attended;
      for (std::size_t h = 0; h < heads; ++h) {
        const Row out = kernels::ref::attention(
            {.q = std::span(q).subspan(h * dim, dim),
             .keys = keys[h / per_kv],
             .values = values[h / per_kv],
             .sink = layer.sinks[h],
             .window = span == model::AttentionSpan::sliding ? config.sliding_window : 0});
        attended.insert(attended.end(), out.begin(), out.end());
      }
      const Row projected = product(layer.o, attended, layer.o_bias);
      for (std::size_t i = 0; i < projected.size(); ++i) x[t][i] += projected[i];
    }
  }

  void add_experts(const model::LayerWeights& layer, Row& x) const {
    const model::ModelConfig& config = weights_.config;
    const Row in = normed(x, layer.mlp_norm);
    const Row logits = product(layer.router, in, layer.router_bias);
    std::vector<std::size_t> order(logits.size());
    for (std::size_t e = 0; e < order.size(); ++e) order[e] = e;
    std::ranges::sort(order, {}, [&](std::size_t e) { return std::pair(-logits[e], e); });
    order.resize(static_cast<std::size_t>(config.experts_per_token));
    double sum = 0;
    for (const std::size_t e : order) sum += std::exp(logits[e]);
    for (const std::size_t e : order) {
      const model::ExpertWeights& expert = layer.experts[e];
      const Row gate = product(expert.gate, in, expert.gate_bias);
      const Row up = product(expert.up, in, expert.up_bias);
      Row activated;
      for (std::size_t i = 0; i < gate.size(); ++i) {
        activated.push_back(kernels::ref::swiglu(gate[i], up[i], config.swiglu_limit));
      }
      const Row down = product(expert.down, activated, expert.down_bias);
      const double weight = std::exp(logits[e]) / sum;
      for (std::size_t i = 0; i < down.size(); ++i) x[i] += weight * down[i];
    }
  }

  const model::ModelWeights& weights_;
};

}  // namespace gauntlet::engine::cpu
