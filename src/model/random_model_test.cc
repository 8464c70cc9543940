#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/check.h"
#include "core/os/fake_tree.h"
#include "model/files/fake_model.h"
#include "model/mxfp4.h"
#include "model/same_weights.h"
#include "model/weights.h"

namespace gauntlet::model {
namespace {

ModelConfig small_shape() {
  auto config = parse_config(FakeModel().config.dump(), "config.json");
  check(static_cast<bool>(config), "the fake model's config is one");
  return *config;
}

double deviation_of(const Matrix& matrix, std::int64_t num_rows) {
  std::vector<float> row(static_cast<std::size_t>(matrix.cols));
  double sum = 0, squares = 0;
  for (std::int64_t r = 0; r < num_rows; ++r) {
    matrix.read_row(r, row.data());
    for (const float value : row) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
  }
  const double count = static_cast<double>(num_rows * matrix.cols);
  EXPECT_LT(std::abs(sum / count), 4 * std::sqrt(squares / count / count));
  return std::sqrt(squares / count);
}

TEST(RandomModel, has_weights_that_keep_activations_of_the_order_of_one) {
  const auto shape = random_shape("gpt-oss-20b", 2);
  ASSERT_TRUE(shape) << shape.error().message;
  const ModelWeights model = random_model(*shape, 7);
  const double wanted = 1 / std::sqrt(2880.0);
  EXPECT_NEAR(deviation_of(model.embedding, 100), wanted, 0.02 * wanted);
  EXPECT_NEAR(deviation_of(model.layers[1].experts[31].up, 100), wanted, 0.02 * wanted);
  EXPECT_NEAR(deviation_of(model.layers[0].o, 100), 1 / std::sqrt(4096.0), 0.001);
  EXPECT_EQ(model.layers[0].mlp_norm[5], 1);
  EXPECT_LT(std::abs(model.layers[0].sinks[5]), 0.1f);
}

TEST(RandomModel, counts_the_bytes_of_the_published_model) {
  const auto shape = random_shape("gpt-oss-20b");
  ASSERT_TRUE(shape);
  const ModelWeights model = random_model(*shape, 7);
  EXPECT_NEAR(static_cast<double>(model.file_bytes), 13.76e9, 0.01e9);
}

TEST(RandomModel, depends_on_its_seed_alone) {
  const ModelConfig shape = small_shape();
  expect_same_weights(random_model(shape, 1), random_model(shape, 1));
  std::vector<float> one(64), other(64);
  random_model(shape, 1).layers[0].q.read_row(3, one.data());
  random_model(shape, 2).layers[0].q.read_row(3, other.data());
  EXPECT_NE(one, other);
}

TEST(RandomModel, gives_no_two_matrices_and_no_two_rows_the_same_numbers) {
  const ModelWeights model = random_model(small_shape(), 1);
  std::set<std::vector<float>> rows;
  std::size_t count = 0;
  const auto add = [&](const Matrix& matrix) {
    for (std::int64_t row = 0; row < 4; ++row, ++count) {
      std::vector<float> values(static_cast<std::size_t>(matrix.cols));
      matrix.read_row(row, values.data());
      rows.insert(values);
    }
  };
  add(model.embedding);
  add(model.lm_head);
  for (const LayerWeights& layer : model.layers) {
    for (const Matrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.router}) {
      add(*matrix);
    }
    for (const ExpertWeights& expert : layer.experts) {
      for (const Matrix* matrix : {&expert.gate, &expert.up, &expert.down}) add(*matrix);
    }
  }
  EXPECT_EQ(rows.size(), count);
}

TEST(RandomModel, keeps_a_layer_when_there_are_fewer) {
  const ModelWeights whole = random_model(*random_shape("gpt-oss-20b", 3), 5);
  const ModelWeights part = random_model(*random_shape("gpt-oss-20b", 1), 5);
  std::vector<float> a(2880), b(2880);
  whole.layers[0].experts[9].gate.read_row(11, a.data());
  part.layers[0].experts[9].gate.read_row(11, b.data());
  EXPECT_EQ(a, b);
}

TEST(RandomModel, reads_the_same_numbers_in_every_form) {
  ModelConfig shape = small_shape();
  shape.head_dim = 2;  // o has rows of 8: less than is made at a time
  const ModelWeights model = random_model(shape, 3);
  const Matrix& o = model.layers[0].o;
  std::vector<float> row(8);
  std::vector<std::uint16_t> bits(8);
  o.read_row(63, row.data());
  o.read_row_bf16(63, bits.data());
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(row[i]), static_cast<std::uint32_t>(bits[i]) << 16);
  }
  const Matrix& gate = model.layers[1].experts[2].gate;
  std::vector<float> direct(64), decoded(64);
  std::uint8_t nibbles[32], scales[2];
  gate.read_row(5, direct.data());
  gate.read_row_mxfp4(5, nibbles, scales);
  decode_mxfp4(nibbles, scales, 64, decoded.data());
  EXPECT_EQ(direct, decoded);
}

TEST(RandomShape, takes_a_file) {
  FakeTree tree;
  tree.write("small.json", FakeModel().config.dump());
  const auto shape = random_shape((tree.root() / "small.json").string(), 1);
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->name, "small");
  EXPECT_EQ(shape->num_layers, 1);
  EXPECT_EQ(shape->attention.size(), 1u);
}

TEST(RandomShape, refuses_what_cannot_be) {
  EXPECT_EQ(random_shape("gpt-oss-20b", 25).error().message,
            "gpt-oss-20b has 24 layers, so 25 of them cannot be taken");
  EXPECT_EQ(random_shape("gpt-oss-20b", -1).error().kind, ErrorKind::wrong_use);
  EXPECT_EQ(random_shape("gpt-oss").error().kind, ErrorKind::wrong_use);
  EXPECT_EQ(random_shape("/none.json").error().kind, ErrorKind::environment);
  FakeTree tree;
  auto config = FakeModel().config;
  config["intermediate_size"] = 48;
  tree.write("odd.json", config.dump());
  const std::string path = (tree.root() / "odd.json").string();
  EXPECT_EQ(random_shape(path).error().message,
            path +
                ": the hidden size 64 and the intermediate size 48 must be multiples of 32, the "
                "block of MXFP4");
}

}  // namespace
}  // namespace gauntlet::model
