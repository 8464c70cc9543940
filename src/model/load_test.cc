#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/os/fake_tree.h"
#include "model/files/fake_model.h"
#include "model/tensor.h"
#include "model/weights.h"

namespace gauntlet::model {
namespace {

using nlohmann::json;

constexpr const char* kTiny = GAUNTLET_SOURCE_DIR "/models/gauntlet-tiny";

TEST(LoadModel, reads_the_shape_of_the_small_model) {
  const auto model = load_model(kTiny);
  ASSERT_TRUE(model) << model.error().message;
  const ModelConfig& config = model->config;
  EXPECT_EQ(config.name, "gauntlet-tiny");
  EXPECT_EQ(config.num_layers, 6);
  EXPECT_EQ(config.query_width(), 256);
  EXPECT_EQ(config.kv_width(), 128);
  EXPECT_EQ(config.rope.factor, 8);
  EXPECT_EQ(config.rope.original_positions, 512);
  EXPECT_THAT(config.eos_ids, testing::ElementsAre(4089, 4088, 4095));
  EXPECT_EQ(config.bos_id, 4087);
  EXPECT_TRUE(config.add_bos);
  ASSERT_EQ(model->layers.size(), 6u);
  ASSERT_EQ(model->layers[5].experts.size(), 32u);
  EXPECT_EQ(model->layers[5].experts[31].down.rows, 256);
}

TEST(LoadModel, finds_models_of_the_source_tree_by_name) {
  for (const char* name : {"gauntlet-tiny", "gauntlet-draft"}) {
    const auto model = load_model(name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->config.name, name);
  }
}

TEST(LoadModel, suggests_the_nearest_name) {
  const auto model = load_model("gauntlet-tinny");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message,
            "there is no model 'gauntlet-tinny', did you mean 'gauntlet-tiny'?");
  EXPECT_EQ(model.error().kind, ErrorKind::environment);
}

TEST(LoadModel, reads_the_same_after_pages_were_released) {
  const auto model = load_model(kTiny);
  ASSERT_TRUE(model);
  const Matrix& matrix = model->embedding;
  std::vector<float> before(256), after(256);
  matrix.read_row(4000, before.data());
  model->release(matrix);
  matrix.read_row(4000, after.data());
  EXPECT_EQ(before, after);
  EXPECT_TRUE(std::isfinite(before[7]));
}

/// What a bent model is refused with; empty when it is taken.
std::string refusal(const std::function<void(FakeModel&)>& bend) {
  FakeModel model;
  bend(model);
  const FakeFiles built = model.built();
  const auto loaded = load_model(built.files());
  return loaded ? "" : loaded.error().message;
}

void retype(FakeModel& model, const std::string& tensor, const char* type,
            const std::vector<std::int64_t>& shape) {
  model.tensors.add(tensor, type, shape);
}

TEST(LoadModel, takes_the_fake_model) {
  EXPECT_EQ(refusal([](FakeModel&) {}), "");
}

TEST(LoadModel, names_each_missing_tensor) {
  const json header = FakeModel().tensors.header;
  for (const auto& [name, entry] : header.items()) {
    EXPECT_EQ(refusal([&](FakeModel& model) { model.tensors.header.erase(name); }),
              "fake: tensor '" + name + "' is missing");
  }
}

TEST(LoadModel, names_each_tensor_of_a_wrong_shape) {
  const json header = FakeModel().tensors.header;
  for (const auto& [name, entry] : header.items()) {
    auto shape = entry["shape"].get<std::vector<std::int64_t>>();
    const std::string right = describe_shape(shape);
    shape[0] += 1;
    const std::string sentence = "model.safetensors: tensor '" + name + "' has shape " +
                                 describe_shape(shape) + " instead of " + right;
    EXPECT_EQ(refusal([&](FakeModel& model) {
                retype(model, name, entry["dtype"].get<std::string>().c_str(), shape);
              }),
              sentence);
  }
}

TEST(LoadModel, names_each_tensor_of_a_wrong_type) {
  const json header = FakeModel().tensors.header;
  for (const auto& [name, entry] : header.items()) {
    const auto shape = entry["shape"].get<std::vector<std::int64_t>>();
    const std::string text = refusal([&](FakeModel& model) { retype(model, name, "I32", shape); });
    EXPECT_THAT(text, testing::HasSubstr("tensor '" + name + "' has type I32"));
  }
}

TEST(LoadModel, refuses_experts_that_mxfp4_cannot_block) {
  const std::string text = refusal([](FakeModel& model) {
    model.config["intermediate_size"] = 48;
    for (const std::string at : {"model.layers.0.mlp.experts.", "model.layers.1.mlp.experts."}) {
      retype(model, at + "gate_up_proj_blocks", "U8", {4, 96, 2, 16});
      retype(model, at + "gate_up_proj_scales", "U8", {4, 96, 2});
      retype(model, at + "gate_up_proj_bias", "BF16", {4, 96});
    }
  });
  EXPECT_EQ(text,
            "model.safetensors: tensor 'model.layers.0.mlp.experts.down_proj_blocks' has rows of "
            "48, not a multiple of 32");
}

TEST(LoadModel, ties_the_embedding_when_the_config_says_so) {
  FakeModel model;
  model.config["tie_word_embeddings"] = true;
  model.tensors.header.erase("lm_head.weight");
  const FakeFiles built = model.built();
  const auto loaded = load_model(built.files());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->lm_head.data, loaded->embedding.data);
}

TEST(LoadModel, refuses_folders_and_files_that_are_no_model) {
  const FakeTree tree;
  const std::string root = tree.root().string();
  EXPECT_EQ(load_model(root).error().message,
            root + " is not a model: it has no config.json and no .safetensors file");
  EXPECT_EQ(load_model(root + "/none").error().message, "there is no model at '" + root + "/none'");
  FakeTree other;
  other.write("notes.txt", "hello");
  EXPECT_EQ(load_model(other.root() / "notes.txt").error().message,
            (other.root() / "notes.txt").string() +
                " is not a model: give a folder with config.json, or a .gguf file");
  other.write("config.json", FakeModel().config.dump());
  EXPECT_EQ(load_model(other.root()).error().message,
            other.root().string() + " has no .safetensors file");
}

}  // namespace
}  // namespace gauntlet::model
