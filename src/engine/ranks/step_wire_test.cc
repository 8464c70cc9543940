#include "engine/ranks/step_wire.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet::engine {
namespace {

StepData some_step(std::uint64_t seed) {
  Random random(seed);
  const auto number = [&] { return static_cast<std::int32_t>(random.next_below(1000)) - 1; };
  StepData step;
  step.tokens.resize(random.next_below(9));
  for (StepToken& token : step.tokens) token = {number(), number(), number()};
  step.items.resize(random.next_below(4));
  for (auto& item : step.items) item = {number(), number(), number(), ItemRole::decode};
  step.table_stride = number();
  for (auto& table : step.tables) table.assign(random.next_below(20), number());
  step.rows.resize(random.next_below(4));
  for (StepRow& row : step.rows) {
    row = {.token = number(),
           .want = Want::logits,
           .sampling = {.temperature = 0.5f, .seed = 1u << 31}};
  }
  step.masks.resize(random.next_below(3));
  for (auto& mask : step.masks) mask.assign(random.next_below(5), 0xF0F0F0F0u);
  step.copies.assign(random.next_below(3), {KvGroup::sliding, number(), number()});
  step.experts_per_token = number();
  step.moves.assign(random.next_below(3),
                    {KvGroup::sliding, number(), number(), number(), number()});
  step.ancestors.assign(random.next_below(9), random.next_below(1u << 30));
  return step;
}

TEST(StepWire, brings_back_what_it_was_given) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const StepData step = some_step(seed);
    const auto bytes = to_bytes(step);
    const auto back = step_of(bytes);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->tokens.size(), step.tokens.size());
    EXPECT_EQ(back->masks, step.masks);
    EXPECT_EQ(back->ancestors, step.ancestors);
    EXPECT_EQ(back->moves.size(), step.moves.size());
    EXPECT_EQ(back->tables[1], step.tables[1]);
    EXPECT_EQ(back->experts_per_token, step.experts_per_token);
    EXPECT_EQ(to_bytes(*back), bytes);
  }
}

TEST(StepWire, brings_back_results) {
  std::vector<RowResult> results(3);
  results[1] = {.token = 7,
                .log_probability = -1.5f,
                .target_log_probability = -2,
                .logits = {1, 2},
                .normed = {3}};
  const auto back = results_of(to_bytes(results));
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), 3u);
  EXPECT_EQ((*back)[1].token, 7);
  EXPECT_EQ((*back)[1].logits, results[1].logits);
  EXPECT_EQ((*back)[1].normed, results[1].normed);
  EXPECT_EQ((*back)[2].token, -1);
}

TEST(StepWire, refuses_what_is_cut_off_or_too_long) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto bytes = to_bytes(some_step(seed));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(step_of(std::span(bytes).first(length)));
    }
    bytes.push_back(std::byte{});
    EXPECT_FALSE(step_of(bytes));
  }
  std::vector<std::byte> huge(8, std::byte{0xFF});
  EXPECT_FALSE(step_of(huge));
  EXPECT_FALSE(results_of(huge));
}

}  // namespace
}  // namespace gauntlet::engine
