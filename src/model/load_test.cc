#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/weights.h"

namespace gauntlet::model {
namespace {

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

}  // namespace
}  // namespace gauntlet::model
