#include "model/mxfp4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.h"

namespace gauntlet::model {
namespace {

TEST(Mxfp4, scale_is_a_power_of_two_down_to_the_subnormal_one) {
  for (int byte = 0; byte < 255; ++byte) {
    EXPECT_EQ(e8m0_value(static_cast<std::uint8_t>(byte)), std::ldexp(1.f, byte - 127)) << byte;
  }
  EXPECT_TRUE(std::isnan(e8m0_value(255)));
}

TEST(Mxfp4, low_nibble_is_the_even_element) {
  std::uint8_t nibbles[16] = {0x21, 0x9F};  // 1 and 2; then 15 and 9
  const std::uint8_t scale = 128;
  float out[32];
  decode_mxfp4(nibbles, &scale, 32, out);
  EXPECT_EQ(out[0], 1.f);    // 0.5 * 2
  EXPECT_EQ(out[1], 2.f);    // 1 * 2
  EXPECT_EQ(out[2], -12.f);  // -6 * 2
  EXPECT_EQ(out[3], -1.f);   // -0.5 * 2
  EXPECT_EQ(out[4], 0.f);
}

TEST(Mxfp4, orders_hold_the_same_elements) {
  Random random(3);
  for (int trial = 0; trial < 100; ++trial) {
    std::uint8_t elements[32], halves[16], expected[16], neighbours[16], back[16];
    for (auto& element : elements) element = static_cast<std::uint8_t>(random.next() & 15);
    for (int j = 0; j < 16; ++j) {
      halves[j] = static_cast<std::uint8_t>(elements[j] | elements[j + 16] << 4);
      expected[j] = static_cast<std::uint8_t>(elements[2 * j] | elements[2 * j + 1] << 4);
    }
    halves_to_neighbours(halves, neighbours);
    EXPECT_THAT(neighbours, testing::ElementsAreArray(expected));
    neighbours_to_halves(neighbours, back);
    EXPECT_THAT(back, testing::ElementsAreArray(halves));
  }
}

}  // namespace
}  // namespace gauntlet::model
