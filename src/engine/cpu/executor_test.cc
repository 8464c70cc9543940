#include <gtest/gtest.h>

#include "engine/steps/cpu_executor.h"

namespace gauntlet::engine::inline steps {
namespace {

model::ModelConfig shape_with_layers(int full, int sliding) {
  model::ModelConfig shape;
  shape.head_dim = 64;
  shape.num_kv_heads = 2;
  shape.max_positions = 1000;
  shape.attention.assign(static_cast<std::size_t>(full), model::AttentionSpan::full);
  shape.attention.insert(shape.attention.end(), static_cast<std::size_t>(sliding),
                         model::AttentionSpan::sliding);
  return shape;
}

TEST(CpuExecutor, keeps_room_for_every_sequence_at_its_full_length_where_memory_allows) {
  const model::ModelConfig shape = shape_with_layers(3, 3);
  constexpr std::int64_t kBytes = 3 * 2 * 128 * 4;  // of a position, in f32
  EXPECT_EQ(default_positions(shape, KvType::f32, 8, 8000 * kBytes), 8000);
  EXPECT_EQ(default_positions(shape, KvType::f32, 8, 1 << 30), 8000);
  EXPECT_EQ(default_positions(shape, KvType::f32, 8, 5000 * kBytes), 5000);
  EXPECT_EQ(default_positions(shape, KvType::bf16, 8, 2500 * kBytes), 5000);
}

TEST(CpuExecutor, keeps_room_for_one_sequence_whatever_the_memory) {
  EXPECT_EQ(default_positions(shape_with_layers(3, 3), KvType::f32, 8, 1), 1000);
  EXPECT_EQ(default_positions(shape_with_layers(0, 1), KvType::f32, 0, 1), 1000);
}

}  // namespace
}  // namespace gauntlet::engine::inline steps
