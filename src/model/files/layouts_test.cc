#include "model/files/layouts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/files/fake_model.h"
#include "model/files/safetensors.h"
#include "model/mxfp4.h"
#include "model/quantized.h"
#include "model/same_weights.h"

namespace gauntlet::model::inline files {
namespace {

using nlohmann::json;

std::vector<float> row_of(const Matrix& matrix, std::int64_t row) {
  std::vector<float> values(static_cast<std::size_t>(matrix.cols));
  matrix.read_row(row, values.data());
  return values;
}

TEST(Layouts, take_even_rows_as_gate_and_odd_ones_as_up) {
  const FakeFiles built = FakeModel().built();
  const auto model = load_model(built.files());
  ASSERT_TRUE(model) << model.error().message;
  TensorTable table("fake");
  ASSERT_TRUE(add_safetensors(*built.files().find("model.safetensors"), table));
  const std::string at = "model.layers.1.mlp.experts.";
  const auto* blocks =
      reinterpret_cast<const std::uint8_t*>(table.find(at + "gate_up_proj_blocks")->data);
  const auto* scales =
      reinterpret_cast<const std::uint8_t*>(table.find(at + "gate_up_proj_scales")->data);
  const auto stored_row = [&](int row) {
    std::vector<float> values(64);
    decode_mxfp4(blocks + row * 32, scales + row * 2, 64, values.data());
    return values;
  };
  const ExpertWeights& expert = model->layers[1].experts[3];
  EXPECT_EQ(row_of(expert.gate, 5), stored_row(3 * 64 + 10));
  EXPECT_EQ(row_of(expert.up, 5), stored_row(3 * 64 + 11));
  std::uint8_t nibbles[32], scale_bytes[2];
  expert.up.read_row_mxfp4(5, nibbles, scale_bytes);
  EXPECT_EQ(std::memcmp(nibbles, blocks + (3 * 64 + 11) * 32, 32), 0);
  EXPECT_EQ(std::memcmp(scale_bytes, scales + (3 * 64 + 11) * 2, 2), 0);
  const auto bias = [&](int index) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, table.find(at + "gate_up_proj_bias")->data + 2 * index, 2);
    return bf16_value(bits);
  };
  EXPECT_EQ(expert.gate_bias[5], bias(3 * 64 + 10));
  EXPECT_EQ(expert.up_bias[5], bias(3 * 64 + 11));
}

TEST(Layouts, read_transposed_experts) {
  FakeModel fake;
  for (const std::string at : {"model.layers.0.mlp.experts.", "model.layers.1.mlp.experts."}) {
    for (const char* name :
         {"gate_up_proj_blocks", "gate_up_proj_scales", "down_proj_blocks", "down_proj_scales"}) {
      fake.tensors.header.erase(at + name);
    }
    fake.tensors.add(at + "gate_up_proj", "BF16", {4, 64, 64});
    fake.tensors.add(at + "down_proj", "BF16", {4, 32, 64});
  }
  const FakeFiles built = fake.built();
  const auto model = load_model(built.files());
  ASSERT_TRUE(model) << model.error().message;
  TensorTable table("fake");
  ASSERT_TRUE(add_safetensors(*built.files().find("model.safetensors"), table));
  const std::string at = "model.layers.0.mlp.experts.";
  const auto element = [](const Tensor* tensor, std::int64_t index) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor->data + 2 * index, 2);
    return bits;
  };
  const Tensor* gate_up_proj = table.find(at + "gate_up_proj");
  const Tensor* down_proj = table.find(at + "down_proj");
  const ExpertWeights& expert = model->layers[0].experts[2];
  std::vector<std::uint16_t> gate(64), up(64), down(32);
  expert.gate.read_row_bf16(7, gate.data());
  expert.up.read_row_bf16(7, up.data());
  expert.down.read_row_bf16(63, down.data());
  for (std::int64_t h = 0; h < 64; ++h) {
    EXPECT_EQ(gate[static_cast<std::size_t>(h)], element(gate_up_proj, (2 * 64 + h) * 64 + 14));
    EXPECT_EQ(up[static_cast<std::size_t>(h)], element(gate_up_proj, (2 * 64 + h) * 64 + 15));
  }
  for (std::int64_t i = 0; i < 32; ++i) {
    EXPECT_EQ(down[static_cast<std::size_t>(i)], element(down_proj, (2 * 32 + i) * 64 + 63));
  }
  EXPECT_EQ(row_of(expert.gate, 7)[9], bf16_value(gate[9]));
}

/// The fake model under the names of the original release, with the same bytes.
FakeFiles renamed_to_original() {
  const FakeModel source;
  FakeModel fake;
  fake.tensors = {};
  const auto copy = [&](const std::string& name, const std::vector<std::string>& parts) {
    const std::size_t begin = fake.tensors.data.size();
    json entry;
    for (const std::string& part : parts) {
      const json& from = source.tensors.header[part];
      const std::size_t first = from["data_offsets"][0], last = from["data_offsets"][1];
      fake.tensors.data += source.tensors.data.substr(first, last - first);
      if (entry.is_null()) {
        entry = from;
      } else {
        entry["shape"][0] = entry["shape"][0].get<int>() + from["shape"][0].get<int>();
      }
    }
    entry["data_offsets"] = {begin, fake.tensors.data.size()};
    fake.tensors.header[name] = entry;
  };
  copy("embedding.weight", {"model.embed_tokens.weight"});
  copy("unembedding.weight", {"lm_head.weight"});
  copy("norm.scale", {"model.norm.weight"});
  for (const std::string n : {"0", "1"}) {
    const std::string from = "model.layers." + n + ".", to = "block." + n + ".";
    const std::string attention = from + "self_attn.", experts = from + "mlp.experts.";
    copy(to + "attn.norm.scale", {from + "input_layernorm.weight"});
    for (const std::string kind : {"weight", "bias"}) {
      copy(to + "attn.qkv." + kind, {attention + "q_proj." + kind, attention + "k_proj." + kind,
                                     attention + "v_proj." + kind});
      copy(to + "attn.out." + kind, {attention + "o_proj." + kind});
      copy(to + "mlp.gate." + kind, {from + "mlp.router." + kind});
    }
    copy(to + "attn.sinks", {attention + "sinks"});
    copy(to + "mlp.norm.scale", {from + "post_attention_layernorm.weight"});
    for (const std::string kind : {"blocks", "scales"}) {
      copy(to + "mlp.mlp1_weight." + kind, {experts + "gate_up_proj_" + kind});
      copy(to + "mlp.mlp2_weight." + kind, {experts + "down_proj_" + kind});
    }
    copy(to + "mlp.mlp1_bias", {experts + "gate_up_proj_bias"});
    copy(to + "mlp.mlp2_bias", {experts + "down_proj_bias"});
  }
  return fake.built();
}

TEST(Layouts, read_the_names_of_the_original_release) {
  const FakeFiles ours = FakeModel().built(), theirs = renamed_to_original();
  const auto expected = load_model(ours.files());
  const auto original = load_model(theirs.files());
  ASSERT_TRUE(expected);
  ASSERT_TRUE(original) << original.error().message;
  expect_same_weights(*expected, *original);
}

}  // namespace
}  // namespace gauntlet::model::inline files
