#include "model/slice.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "model/tensor.h"

namespace gauntlet::model {
namespace {

std::vector<float> row_of(const Matrix& matrix, std::int64_t row) {
  std::vector<float> values(static_cast<std::size_t>(matrix.cols));
  matrix.read_row(row, values.data());
  return values;
}

std::vector<float> part(const std::vector<float>& row, std::int64_t first, std::int64_t count) {
  return {row.begin() + first, row.begin() + first + count};
}

ModelConfig small() {
  ModelConfig config = *named_shape("gpt-oss-20b");
  config.num_layers = 3;
  config.hidden = 96;
  config.intermediate = 160;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 32;
  config.num_experts = 4;
  config.vocab = 100;
  config.attention = alternating_attention(3);
  config.eos_ids = {};
  config.bos_id = -1;
  return config;
}

/// A random matrix, and gauntlet-tiny's of every type.
std::vector<Matrix> matrices(const ModelWeights& random, const ModelWeights& tiny) {
  return {random.layers[0].q, random.layers[1].experts[2].down, tiny.layers[0].o,
          tiny.layers[0].experts[3].down, tiny.layers[2].experts[1].gate};
}

TEST(Views, show_the_rows_and_columns_of_the_whole) {
  const auto random = random_model(small(), 3);
  const auto loaded = load_model(std::string(GAUNTLET_SOURCE_DIR) + "/models/gauntlet-tiny");
  ASSERT_TRUE(loaded) << loaded.error().message;
  for (const Matrix& matrix : matrices(random, *loaded)) {
    for (std::int64_t first = 0; first < matrix.cols; first += 32) {
      for (std::int64_t cols = 32; first + cols <= matrix.cols; cols += 64) {
        const Matrix view = rows_of(columns_of(matrix, first, cols), 5, 7);
        EXPECT_EQ(view.rows, 7);
        for (std::int64_t row = 0; row < 7; ++row) {
          EXPECT_EQ(row_of(view, row), part(row_of(matrix, row + 5), first, cols));
        }
        if (cols <= 32) continue;
        const Matrix inner = columns_of(rows_of(view, 1, 2), 32, cols - 32);
        EXPECT_EQ(row_of(inner, 1), part(row_of(matrix, 7), first + 32, cols - 32));
      }
    }
  }
}

TEST(Views, give_mxfp4_as_it_lies) {
  const auto random = random_model(small(), 3);
  const Matrix& down = random.layers[0].experts[0].down;
  std::vector<std::uint8_t> nibbles(80), scales(5), some(32), some_scales(2);
  down.read_row_mxfp4(4, nibbles.data(), scales.data());
  columns_of(down, 64, 64).read_row_mxfp4(4, some.data(), some_scales.data());
  EXPECT_TRUE(std::equal(some.begin(), some.end(), nibbles.begin() + 32));
  EXPECT_TRUE(std::equal(some_scales.begin(), some_scales.end(), scales.begin() + 2));
}

TEST(Views, cut_no_block) {
  const auto random = random_model(small(), 3);
  EXPECT_THROW((void)columns_of(random.layers[0].experts[0].down, 16, 32), Fault);
  EXPECT_THROW((void)columns_of(random.layers[0].q, 32, 96), Fault);
}

TEST(Slices, have_their_part_and_its_counts) {
  const auto random = random_model(small(), 3);
  Slice slice = whole_slice(random.config);
  slice.layers = {1, 3};
  slice.heads = {2, 4};
  slice.kv_heads = {1, 2};
  slice.experts = {2, 4};
  slice.intermediate = {64, 160};
  slice.vocab = {64, 100};
  slice.adds_o_bias = false;
  const ModelWeights part_weights = slice_weights(random, slice);
  EXPECT_EQ(part_weights.config.num_layers, 2);
  EXPECT_EQ(part_weights.config.num_heads, 2);
  EXPECT_EQ(part_weights.config.num_kv_heads, 1);
  EXPECT_EQ(part_weights.config.intermediate, 96);
  EXPECT_EQ(part_weights.config.num_experts, 4);
  EXPECT_EQ(part_weights.config.attention,
            (std::vector{AttentionSpan::full, AttentionSpan::sliding}));
  const LayerWeights& from = random.layers[1];
  const LayerWeights& to = part_weights.layers[0];
  EXPECT_EQ(row_of(to.k, 3), row_of(from.k, 35));
  EXPECT_EQ(row_of(to.o, 9), part(row_of(from.o, 9), 64, 64));
  EXPECT_EQ(to.sinks, part(from.sinks, 2, 2));
  EXPECT_EQ(to.o_bias, Vector(96, 0.0f));
  EXPECT_EQ(row_of(to.experts[3].up, 0), row_of(from.experts[3].up, 64));
  EXPECT_EQ(row_of(to.experts[3].down, 7), part(row_of(from.experts[3].down, 7), 64, 96));
  EXPECT_EQ(to.experts[3].down_bias, from.experts[3].down_bias);
  EXPECT_EQ(row_of(part_weights.lm_head, 0), row_of(random.lm_head, 64));

  EXPECT_EQ(to.experts.size(), 4u);
  EXPECT_EQ(to.experts[1].down.rows, 0);

  slice.cut = Cut::outputs;
  slice.o_outputs = {32, 96};
  slice.down_outputs = {0, 32};
  const ModelWeights by_outputs = slice_weights(random, slice);
  EXPECT_EQ(row_of(by_outputs.layers[0].o, 0), row_of(from.o, 32));
  EXPECT_EQ(by_outputs.layers[0].o_bias, part(from.o_bias, 32, 64));
  EXPECT_EQ(by_outputs.layers[0].experts[2].down.rows, 32);
  EXPECT_EQ(by_outputs.layers[0].experts[2].down.cols, 160);
}

TEST(Slices, see_only_their_part_of_the_file) {
  const auto random = random_model(small(), 3);
  EXPECT_EQ(stored_bytes(random), random.file_bytes);
  const Slice whole = whole_slice(random.config);
  EXPECT_EQ(slice_weights(random, whole).file_bytes, random.file_bytes);
  // Divided among two ranks, and whole on both.
  std::int64_t both = 0;
  for (const bool first : {true, false}) {
    Slice half = whole;
    half.experts = first ? Range{0, 2} : Range{2, 4};
    both += slice_weights(random, half).file_bytes;
  }
  std::int64_t experts = 0;
  Slice none = whole;
  none.experts = {0, 0};
  const std::int64_t others = slice_weights(random, none).file_bytes;
  experts = random.file_bytes - others;
  EXPECT_GT(experts, others / 2);
  EXPECT_EQ(both, experts + 2 * others);
}

}  // namespace
}  // namespace gauntlet::model
