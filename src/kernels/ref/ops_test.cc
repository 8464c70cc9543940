#include "kernels/ref/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gauntlet::kernels::ref {
namespace {

using testing::ElementsAre;

TEST(Mxfp4, low_nibbles_are_even_elements_and_scales_are_powers_of_two) {
  std::vector<std::uint8_t> nibbles(16, 0);
  nibbles[0] = 0x97;  // element 0: 6, element 1: -0.5
  const std::vector<std::uint8_t> scales = {128};
  const auto values = dequantise_mxfp4(nibbles, scales);
  EXPECT_EQ(values[0], 12);
  EXPECT_EQ(values[1], -1);
  EXPECT_EQ(values[2], 0);
}

TEST(Swiglu, clamps_the_gate_above_only_and_the_up_on_both_sides) {
  EXPECT_DOUBLE_EQ(swiglu(100, 100, 7), 8 * 7 / (1 + std::exp(-1.702 * 7)));
  EXPECT_DOUBLE_EQ(swiglu(-9, -100, 7), -6 * -9 / (1 + std::exp(1.702 * 9)));
  EXPECT_EQ(swiglu(0, 3, 7), 0);
}

TEST(Attention, a_sink_takes_weight_and_gives_no_value) {
  const std::vector<double> q = {0, 0}, keys = {1, 1}, values = {4, 8};
  EXPECT_THAT(attention({.q = q, .keys = keys, .values = values, .sink = 0}), ElementsAre(2, 4));
}

TEST(Attention, a_window_includes_the_query_itself) {
  const std::vector<double> q = {0}, keys = {0, 0, 0}, values = {100, 10, 20};
  const auto out = attention({.q = q, .keys = keys, .values = values, .sink = -1e9, .window = 2});
  EXPECT_DOUBLE_EQ(out[0], 15);
}

TEST(RmsNorm, divides_by_the_root_of_the_mean_square) {
  const std::vector<double> x = {3, 4}, weight = {1, 2};
  const double rms = std::sqrt(12.5);
  EXPECT_THAT(rms_norm(x, weight, 0), ElementsAre(3 / rms, 8 / rms));
}

}  // namespace
}  // namespace gauntlet::kernels::ref
