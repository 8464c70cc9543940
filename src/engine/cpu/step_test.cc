// Does a step's data reach the layers token by token?
#include "engine/cpu/step.h"

#include <gtest/gtest.h>

namespace gauntlet::engine::cpu {
namespace {

StepData two_items() {
  StepData data;
  data.tokens = {{.id = 5, .position = 9, .slot = 9},
                 {.id = 6, .position = 10, .slot = 11},
                 {.id = 7, .position = 3, .slot = -1}};
  data.items = {{.first_token = 0, .num_tokens = 2, .context = 9, .exports = true},
                {.first_token = 2, .num_tokens = 1, .context = 3}};
  data.table_stride = 2;
  data.tables[0] = {1, 2, 3, 4};
  data.tables[1] = {5, 6, 7, 8};
  return data;
}

TEST(CpuStep, has_each_token_s_place_and_its_item_s_pages) {
  const StepData data = two_items();
  const Step step(data);
  EXPECT_EQ(step.num_tokens(), 3);
  EXPECT_EQ(step.ids, (std::vector<std::int32_t>{5, 6, 7}));
  EXPECT_EQ(step.positions, (std::vector<std::int64_t>{9, 10, 3}));
  EXPECT_EQ(step.slots, (std::vector<std::int64_t>{9, 11, -1})) << "apart from positions";
  EXPECT_EQ(step.item_of, (std::vector<std::int32_t>{0, 0, 1}));
  EXPECT_EQ(step.exported, (std::vector<std::int32_t>{0, 1}));
  ASSERT_EQ(step.items.size(), 2u);
  EXPECT_EQ(step.items[1].first_token, 2);
  EXPECT_EQ(step.items[1].tables[0][0], 3);
  EXPECT_EQ(step.items[0].tables[1][1], 6);
}

TEST(CpuBuffers, have_room_for_as_many_tokens_as_they_are_made_for) {
  model::ModelConfig config;
  config.hidden = 64;
  config.num_layers = 3;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 32;
  config.num_experts = 5;
  config.experts_per_token = 2;
  config.intermediate = 96;
  const Buffers buffers(config, 7, 3);
  EXPECT_EQ(buffers.x.size(), 7u * 64);
  EXPECT_EQ(buffers.partial.size(), 7u * 64);
  EXPECT_EQ(buffers.router.size(), 7u * 16) << "experts in whole groups of rows";
  EXPECT_EQ(buffers.chosen.size(), 7u * 2);
  EXPECT_EQ(buffers.expert_tokens.size(), 3u * 5);
  EXPECT_EQ(buffers.workers.size(), 3u);
  EXPECT_EQ(buffers.workers[2].router.size(), static_cast<std::size_t>(kRepeatedTokens) * 16);
}

}  // namespace
}  // namespace gauntlet::engine::cpu
