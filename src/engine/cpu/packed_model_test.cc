// Is every packed weight the model's, in the order that layers read it in?
#include "engine/cpu/packed_model.h"

#include <gtest/gtest.h>

#include "engine/cpu/layers_cases.h"
#include "engine/cpu/rows.h"

namespace gauntlet::engine::cpu {
namespace {

PackedModel packed(const EngineOptions& options, int threads) {
  ThreadPool pool(std::vector<int>(static_cast<std::size_t>(threads), allowed_cpus()[0]));
  return std::move(pack_model(small_model(), resolve(options).value(), pool, {}).value());
}

/// Row `row` of a packed matrix: its products with the columns of the identity, in float32.
std::vector<std::vector<float>> unpacked(const kernels::cpu::PackedMatrix& matrix) {
  const auto& kernels = kernels::cpu::kernels(kernels::cpu::SimdLevel::portable);
  const std::int64_t rows = matrix.num_groups() * kernels::cpu::kGroupRows;
  Rows identity(matrix.cols, matrix.cols);
  for (std::int64_t c = 0; c < matrix.cols; ++c) identity.row(c)[c] = 1;
  std::vector<float> out(static_cast<std::size_t>(rows * matrix.cols));
  kernels.product({.weights = matrix,
                   .precision = kernels::cpu::Precision::f32,
                   .group_end = matrix.num_groups(),
                   .num_tokens = matrix.cols,
                   .x = identity.view(),
                   .out = out.data(),
                   .out_stride = rows});
  std::vector<std::vector<float>> all;
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    std::vector<float>& row = all.emplace_back();
    for (std::int64_t c = 0; c < matrix.cols; ++c) {
      row.push_back(out[static_cast<std::size_t>(c * rows + r)]);
    }
  }
  return all;
}

std::vector<std::vector<float>> rows_of(const model::Matrix& matrix) {
  std::vector<std::vector<float>> all;
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    matrix.read_row(r, all.emplace_back(static_cast<std::size_t>(matrix.cols)).data());
  }
  return all;
}

TEST(PackedModel, has_every_weight_in_the_order_of_the_layers) {
  const model::ModelWeights& weights = small_model();
  for (const ExpertWeightsKind experts :
       {ExpertWeightsKind::mxfp4, ExpertWeightsKind::dequantised}) {
    const PackedModel model = packed({.threads = 1, .experts = experts}, 3);
    ASSERT_EQ(model.layers.size(), weights.layers.size());
    EXPECT_EQ(unpacked(model.lm_head), rows_of(weights.lm_head));
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      const model::LayerWeights& from = weights.layers[l];
      const PackedLayer& to = model.layers[l];
      auto qkv = rows_of(from.q);
      for (const model::Matrix* part : {&from.k, &from.v}) {
        const auto rows = rows_of(*part);
        qkv.insert(qkv.end(), rows.begin(), rows.end());
      }
      EXPECT_EQ(unpacked(to.qkv), qkv);
      EXPECT_EQ(unpacked(to.o), rows_of(from.o));
      EXPECT_EQ(unpacked(to.router), rows_of(from.router));
      for (std::size_t e = 0; e < from.experts.size(); ++e) {
        const auto gate = rows_of(from.experts[e].gate), up = rows_of(from.experts[e].up);
        const auto both = unpacked(to.experts[e].gate_up);
        for (std::size_t r = 0; r < gate.size(); ++r) {
          EXPECT_EQ(both[r / 32 * 64 + r % 32], gate[r]);
          EXPECT_EQ(both[r / 32 * 64 + 32 + r % 32], up[r]);
          EXPECT_EQ(to.experts[e].gate_up_bias[r / 32 * 64 + r % 32], from.experts[e].gate_bias[r]);
          EXPECT_EQ(to.experts[e].gate_up_bias[r / 32 * 64 + 32 + r % 32],
                    from.experts[e].up_bias[r]);
        }
        EXPECT_EQ(unpacked(to.experts[e].down), rows_of(from.experts[e].down));
      }
      EXPECT_EQ(to.router_bias.size(), 16u) << "padded as rows are";
      EXPECT_EQ(to.sinks, from.sinks);
    }
  }
}

TEST(PackedModel, refuses_shapes_that_kernels_do_not_take) {
  for (const int spoiled : {0, 1, 2}) {
    model::ModelWeights weights = small_model();
    if (spoiled == 0) weights.config.head_dim = 24;
    if (spoiled == 1) weights.config.intermediate = 80;
    if (spoiled == 2) weights.config.hidden = 100;
    ThreadPool pool({allowed_cpus()[0]});
    EXPECT_FALSE(pack_model(weights, resolve({.threads = 1}).value(), pool, {}));
  }
}

}  // namespace
}  // namespace gauntlet::engine::cpu
