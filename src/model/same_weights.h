// Tests' comparison of two models: every row of every matrix and every vector, bit for bit.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "model/weights.h"

namespace gauntlet::model {

inline void expect_same_rows(const Matrix& a, const Matrix& b, const char* what) {
  ASSERT_EQ(a.rows, b.rows) << what;
  ASSERT_EQ(a.cols, b.cols) << what;
  std::vector<float> of_a(static_cast<std::size_t>(a.cols)), of_b(of_a.size());
  for (std::int64_t row = 0; row < a.rows; ++row) {
    a.read_row(row, of_a.data());
    b.read_row(row, of_b.data());
    ASSERT_EQ(std::memcmp(of_a.data(), of_b.data(), of_a.size() * sizeof(float)), 0)
        << what << ", row " << row;
  }
}

inline void expect_same_weights(const ModelWeights& a, const ModelWeights& b) {
  expect_same_rows(a.embedding, b.embedding, "embedding");
  expect_same_rows(a.lm_head, b.lm_head, "lm_head");
  EXPECT_EQ(a.final_norm, b.final_norm);
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const LayerWeights &x = a.layers[i], &y = b.layers[i];
    EXPECT_EQ(x.attention_norm, y.attention_norm);
    expect_same_rows(x.q, y.q, "q");
    expect_same_rows(x.k, y.k, "k");
    expect_same_rows(x.v, y.v, "v");
    expect_same_rows(x.o, y.o, "o");
    EXPECT_EQ(x.q_bias, y.q_bias);
    EXPECT_EQ(x.k_bias, y.k_bias);
    EXPECT_EQ(x.v_bias, y.v_bias);
    EXPECT_EQ(x.o_bias, y.o_bias);
    EXPECT_EQ(x.sinks, y.sinks);
    EXPECT_EQ(x.mlp_norm, y.mlp_norm);
    expect_same_rows(x.router, y.router, "router");
    EXPECT_EQ(x.router_bias, y.router_bias);
    ASSERT_EQ(x.experts.size(), y.experts.size());
    for (std::size_t e = 0; e < x.experts.size(); ++e) {
      expect_same_rows(x.experts[e].gate, y.experts[e].gate, "gate");
      expect_same_rows(x.experts[e].up, y.experts[e].up, "up");
      expect_same_rows(x.experts[e].down, y.experts[e].down, "down");
      EXPECT_EQ(x.experts[e].gate_bias, y.experts[e].gate_bias);
      EXPECT_EQ(x.experts[e].up_bias, y.experts[e].up_bias);
      EXPECT_EQ(x.experts[e].down_bias, y.experts[e].down_bias);
    }
  }
}

}  // namespace gauntlet::model
