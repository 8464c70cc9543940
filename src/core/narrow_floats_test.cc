#include "core/narrow_floats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gauntlet {
namespace {

static_assert(dtype_of<Bf16>() == DType::bf16 && sizeof(Bf16) == size_of(DType::bf16));
static_assert(dtype_of<F8e4m3>() == DType::f8e4m3 && sizeof(F8e4m3) == size_of(DType::f8e4m3));

TEST(NarrowFloats, hold_every_bf16_that_is_a_number) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 value{static_cast<std::uint16_t>(bits)};
    if (!std::isfinite(to_float(value))) continue;
    ASSERT_EQ(to_bf16(to_float(value)), value) << bits;
  }
}

TEST(NarrowFloats, round_to_the_nearest_bf16_and_ties_to_even) {
  EXPECT_EQ(to_float(to_bf16(1.0f + 0x1p-8f)), 1.0f);
  EXPECT_EQ(to_float(to_bf16(1.0f + 0x1p-8f + 0x1p-20f)), 1.0f + 0x1p-7f);
  EXPECT_EQ(to_float(to_bf16(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f);
  EXPECT_EQ(to_float(to_bf16(-127.0f)), -127.0f);
}

TEST(NarrowFloats, hold_every_e4m3_that_is_a_number) {
  for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
    const F8e4m3 value{static_cast<std::uint8_t>(bits)};
    if ((bits & 0x7F) == 0x7F) continue;
    ASSERT_EQ(to_f8e4m3(to_float(value)), value) << bits;
  }
  EXPECT_EQ(to_float(F8e4m3{0x7E}), 448.0f);
  EXPECT_EQ(to_float(F8e4m3{0x01}), 0x1p-9f);
  EXPECT_EQ(to_float(F8e4m3{0x38}), 1.0f);
}

TEST(NarrowFloats, round_to_the_nearest_e4m3_and_ties_to_even) {
  for (std::uint8_t bits = 0; bits < 0x7E; ++bits) {
    const float here = to_float(F8e4m3{bits});
    const float next = to_float(F8e4m3{static_cast<std::uint8_t>(bits + 1)});
    const float middle = (here + next) / 2;
    const auto even = static_cast<std::uint8_t>(bits + bits % 2);
    EXPECT_EQ(to_f8e4m3(middle).bits, even) << middle;
    EXPECT_EQ(to_f8e4m3(std::nextafter(middle, 0.0f)).bits, bits) << middle;
    EXPECT_EQ(to_f8e4m3(std::nextafter(middle, 1e9f)).bits, bits + 1) << middle;
    EXPECT_EQ(to_f8e4m3(-std::nextafter(middle, 0.0f)).bits, bits | 0x80) << middle;
  }
  EXPECT_EQ(to_float(to_f8e4m3(1e9f)), 448.0f);
  EXPECT_EQ(to_float(to_f8e4m3(-1e9f)), -448.0f);
}

}  // namespace
}  // namespace gauntlet
