#include "lab/author/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gauntlet::lab::inline author {
namespace {

std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  const Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.uniform(-1, 1, i);
  return values;
}

struct Case {
  std::vector<float> a;
  std::vector<float> b;
  Product product;
  Reference reference{7};
};

Case expected_case(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                   std::int64_t stride) {
  Case c{.a = random_floats(batch * m * k, 1), .b = random_floats(batch * k * n, 2)};
  c.product = {.a = c.a.data(), .b = c.b.data(), .m = m, .n = n, .k = k, .batch = batch};
  c.reference.declare("c", DType::f32, batch * m * n);
  expect_product(c.reference, "c", c.product, {.operands = DType::tf32}, stride);
  return c;
}

TEST(WeightedSums, add_every_element_of_any_length) {
  for (const std::size_t length : {1u, 7u, 8u, 9u, 100u}) {
    const auto x = random_floats(static_cast<std::int64_t>(length), 3);
    std::vector<double> w(length), w2(length);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < length; ++i) {
      w[i] = 0.25 * static_cast<double>(i + 1);
      w2[i] = 3.0 + static_cast<double>(i);
      sum += double{x[i]} * w[i];
      squares += double{x[i]} * x[i] * w2[i];
    }
    const WeightedSums got = weighted_sums(x.data(), w, w2);
    EXPECT_NEAR(got.sum, sum, 1e-12);
    EXPECT_NEAR(got.squares, squares, 1e-10);
  }
}

TEST(ExpectProduct, gives_rows_with_their_norms) {
  const Case c = expected_case(6, 5, 7, 3, 4);
  const ExpectedOutput& output = c.reference.outputs().at("c");
  EXPECT_EQ(output.rounding.length, 7);
  EXPECT_EQ(output.rounding.operands, DType::tf32);
  ASSERT_EQ(output.rows.size(), 5u);  // 18 rows in strata of four
  for (std::size_t i = 0; i < output.rows.size(); ++i) {
    const std::int64_t row = output.rows[i], product = row / 6;
    for (std::int64_t column = 0; column < 5; ++column) {
      double sum = 0, squares = 0;
      for (std::int64_t k = 0; k < 7; ++k) {
        const double term = double{c.a[static_cast<std::size_t>(row * 7 + k)]} *
                            c.b[static_cast<std::size_t>((product * 7 + k) * 5 + column)];
        sum += term;
        squares += term * term;
      }
      EXPECT_NEAR(output.values[i * 5 + static_cast<std::size_t>(column)], sum, 1e-12);
      EXPECT_NEAR(output.norms[i * 5 + static_cast<std::size_t>(column)], std::sqrt(squares),
                  1e-12);
    }
  }
}

TEST(ExpectProduct, sums_every_row_of_every_product) {
  // With a stride of one the rows are all there, so that each sum can be taken from them.
  for (const std::int64_t batch : {1, 3}) {
    const Case c = expected_case(4, 9, 11, batch, 1);
    const ExpectedOutput& output = c.reference.outputs().at("c");
    ASSERT_TRUE(output.has_row_sums);
    ASSERT_EQ(output.sums.size(), static_cast<std::size_t>(4 * batch));
    for (std::size_t row = 0; row < output.sums.size(); ++row) {
      double sum = 0, squares = 0;
      for (std::size_t column = 0; column < 9; ++column) {
        const double weight = output.weights[column], norm = output.norms[row * 9 + column];
        sum += weight * output.values[row * 9 + column];
        squares += weight * weight * norm * norm;
      }
      EXPECT_NEAR(output.sums[row], sum, 1e-12);
      EXPECT_NEAR(output.squares[row], squares, 1e-10);
    }
  }
}

TEST(ExpectProduct, takes_single_elements) {
  const Case c = expected_case(1, 1, 1, 1, 1);
  const ExpectedOutput& output = c.reference.outputs().at("c");
  EXPECT_DOUBLE_EQ(output.values[0], double{c.a[0]} * c.b[0]);
  EXPECT_DOUBLE_EQ(output.sums[0], output.weights[0] * output.values[0]);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
