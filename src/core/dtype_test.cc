#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace gauntlet {
namespace {

constexpr DType kAll[] = {DType::f64,    DType::f32,    DType::tf32, DType::f16, DType::bf16,
                          DType::f8e4m3, DType::f8e5m2, DType::i64,  DType::i32, DType::i16,
                          DType::i8,     DType::u64,    DType::u32,  DType::u16, DType::u8};

TEST(DType, has_a_size_and_a_name_of_its_own_for_each_type) {
  std::set<std::string> names;
  for (DType type : kAll) {
    EXPECT_GT(size_of(type), 0u) << name_of(type);
    EXPECT_NE(name_of(type), "?");
    names.emplace(name_of(type));
  }
  EXPECT_EQ(names.size(), std::size(kAll));
}

TEST(DType, matches_the_size_of_the_element_it_stands_for) {
  EXPECT_EQ(size_of(dtype_of<double>()), sizeof(double));
  EXPECT_EQ(size_of(dtype_of<float>()), sizeof(float));
  EXPECT_EQ(size_of(dtype_of<std::int64_t>()), sizeof(std::int64_t));
  EXPECT_EQ(size_of(dtype_of<std::uint32_t>()), sizeof(std::uint32_t));
  EXPECT_EQ(size_of(dtype_of<std::int16_t>()), sizeof(std::int16_t));
  EXPECT_EQ(size_of(dtype_of<std::uint8_t>()), sizeof(std::uint8_t));
  EXPECT_EQ(size_of(DType::tf32), 4u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::f8e4m3), 1u);
}

TEST(DType, gives_half_an_ulp_of_one_as_roundoff) {
  EXPECT_EQ(unit_roundoff(DType::f64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::f32), std::numeric_limits<float>::epsilon() / 2);
  // Explicit mantissa bits: tf32 and f16 10, bf16 7, e4m3 3, e5m2 2.
  EXPECT_EQ(unit_roundoff(DType::tf32), std::ldexp(1.0, -11));
  EXPECT_EQ(unit_roundoff(DType::f16), std::ldexp(1.0, -11));
  EXPECT_EQ(unit_roundoff(DType::bf16), std::ldexp(1.0, -8));
  EXPECT_EQ(unit_roundoff(DType::f8e4m3), std::ldexp(1.0, -4));
  EXPECT_EQ(unit_roundoff(DType::f8e5m2), std::ldexp(1.0, -3));
}

TEST(DType, calls_integers_exact) {
  for (DType type : kAll) {
    const char first = name_of(type)[0];
    EXPECT_EQ(is_float(type), first != 'i' && first != 'u') << name_of(type);
  }
}

}  // namespace
}  // namespace gauntlet
