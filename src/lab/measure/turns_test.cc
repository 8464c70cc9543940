// Do blocks meet all sides alike, and do those of a hot GPU not count?
#include "lab/measure/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace gauntlet::lab::inline measure {
namespace {

using testing::ElementsAre;

using Order = std::vector<std::size_t>;

std::optional<GpuState> no_sensors() { return std::nullopt; }

/// Blocks whose samples take so many ns as were taken before them.
struct TakingTurns : testing::Test {
  Random random{3};
  Conditions conditions;
  Order order;  // of the last block's samples
  std::vector<int> halves;

  std::optional<stats::Block> take(std::size_t sides, const ReadSensors& sensors = no_sensors) {
    order.clear();
    halves.clear();
    const TakeSample sample = [&](std::size_t side, int half) -> Expected<double> {
      order.push_back(side);
      halves.push_back(half);
      return static_cast<double>(order.size());
    };
    const auto block = take_block(sides, random, sample, sensors, conditions);
    EXPECT_TRUE(block);
    return *block;
  }
};

TEST_F(TakingTurns, mirror_the_first_half_in_the_second) {
  for (const std::size_t sides : {1u, 2u, 3u, 7u}) {
    const auto block = take(sides);
    ASSERT_TRUE(block);
    ASSERT_EQ(order.size(), 2 * sides);
    EXPECT_EQ(Order(order.rbegin(), order.rend()), order);
    EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), sides);
    for (std::size_t i = 0; i < sides; ++i) {
      EXPECT_EQ(halves[i], 0);
      EXPECT_EQ(halves[sides + i], 1);
    }
  }
}

TEST_F(TakingTurns, cancel_a_drift_that_is_linear_over_the_block) {
  for (int i = 0; i < 10; ++i) {
    const auto block = take(3);
    ASSERT_TRUE(block);
    EXPECT_EQ(block->ratio(0, 1), 1);
    EXPECT_EQ(block->ratio(0, 2), 1);
  }
}

TEST_F(TakingTurns, keep_each_sample_with_its_side_and_half) {
  const auto block = take(2);
  ASSERT_TRUE(block);
  const std::size_t first = order[0], second = order[1];
  EXPECT_THAT(block->ns[first], ElementsAre(1, 4));
  EXPECT_THAT(block->ns[second], ElementsAre(2, 3));
}

TEST_F(TakingTurns, come_in_every_order_about_as_often) {
  std::map<Order, int> seen;
  for (int i = 0; i < 600; ++i) {
    take(3);
    ++seen[Order(order.begin(), order.begin() + 3)];
  }
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [first_half, times] : seen) {
    EXPECT_GT(times, 60);
    EXPECT_LT(times, 140);
  }
}

TEST_F(TakingTurns, drop_a_block_of_a_thermally_slowed_gpu_whole_and_count_it) {
  GpuState state{.sm_clock_mhz = 1500, .power_w = 300, .temperature_c = 70};
  const ReadSensors sensors = [&] { return std::optional(state); };
  EXPECT_TRUE(take(2, sensors));
  state = {.sm_clock_mhz = 900,
           .power_w = 200,
           .temperature_c = 90,
           .thermal_slowdown = true,
           .throttle_reasons = {"hw thermal"}};
  EXPECT_FALSE(take(2, sensors));
  EXPECT_FALSE(take(2, sensors));
  state = {.sm_clock_mhz = 1700, .temperature_c = 60, .throttle_reasons = {"power cap"}};
  EXPECT_TRUE(take(2, sensors)) << "a power cap is the GPU as it is";
  EXPECT_EQ(conditions.blocks, 2);
  EXPECT_EQ(conditions.dropped_blocks, 2);
  EXPECT_EQ(conditions.sm_clock_mhz_min, 900);
  EXPECT_EQ(conditions.sm_clock_mhz_max, 1700);
  EXPECT_EQ(conditions.power_w_max, 300);
  EXPECT_EQ(conditions.temperature_c_max, 90);
  EXPECT_THAT(conditions.throttle_reasons, ElementsAre("hw thermal", "power cap"));
}

TEST_F(TakingTurns, read_the_sensors_once_the_block_is_over) {
  std::size_t taken = 0;
  take(2, [&]() -> std::optional<GpuState> {
    taken = order.size();
    return std::nullopt;
  });
  EXPECT_EQ(taken, 4u);
  EXPECT_EQ(conditions.blocks, 1);
  EXPECT_EQ(conditions.sm_clock_mhz_min, 0) << "nothing is known without sensors";
}

TEST_F(TakingTurns, end_with_the_first_error) {
  int taken = 0;
  const TakeSample sample = [&](std::size_t, int) -> Expected<double> {
    if (++taken == 3) return Error{"the device is gone"};
    return 1.0;
  };
  const auto block = take_block(2, random, sample, no_sensors, conditions);
  ASSERT_FALSE(block);
  EXPECT_EQ(block.error().message, "the device is gone");
  EXPECT_EQ(taken, 3);
  EXPECT_EQ(conditions.blocks, 0);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
