#include "lab/author/linear.h"

#include <gtest/gtest.h>

#include <vector>

namespace gauntlet::lab::inline author {
namespace {

TEST(ExpectLinear, takes_weights_by_rows_of_outputs) {
  constexpr std::int64_t kM = 5, kN = 19, kK = 33;
  const Random random(3);
  std::vector<float> a(kM * kK), b(kN * kK), turned(kK * kN);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = random.uniform(-1, 1, i);
  for (std::size_t i = 0; i < b.size(); ++i) {
    b[i] = random.uniform(-1, 1, 1000 + i);
    turned[i % kK * kN + i / kK] = b[i];
  }
  Reference linear(7), product(7);
  for (Reference* reference : {&linear, &product}) reference->declare("c", DType::f32, kM * kN);
  expect_linear(linear, "c", {.a = a.data(), .b = b.data(), .m = kM, .n = kN, .k = kK}, {}, 2);
  expect_product(product, "c", {.a = a.data(), .b = turned.data(), .m = kM, .n = kN, .k = kK}, {},
                 2);

  const ExpectedOutput &got = linear.outputs().at("c"), &want = product.outputs().at("c");
  EXPECT_EQ(got.rounding.length, kK);
  EXPECT_EQ(got.rows, want.rows);
  ASSERT_EQ(got.values.size(), want.values.size());
  for (std::size_t i = 0; i < want.values.size(); ++i) EXPECT_EQ(got.values[i], want.values[i]);
  ASSERT_EQ(got.sums.size(), static_cast<std::size_t>(kM));
  for (std::size_t i = 0; i < kM; ++i) EXPECT_EQ(got.sums[i], want.sums[i]);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
