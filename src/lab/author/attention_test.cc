#include "lab/author/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gauntlet::lab::inline author {
namespace {

constexpr std::int64_t kHeads = 2, kQueries = 5, kKeys = 7, kHeadDim = 3;

struct Operands {
  std::vector<float> q, k, v;
  explicit Operands(std::uint64_t seed) {
    const Random random(seed);
    std::uint64_t at = 0;
    for (auto* values : {&q, &k, &v}) {
      values->resize(
          static_cast<std::size_t>(kHeads * kHeadDim * (values == &q ? kQueries : kKeys)));
      for (float& value : *values) value = random.uniform(-2, 2, at++);
    }
  }
  Attention attention() const {
    return {.q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .heads = kHeads,
            .queries = kQueries,
            .keys = kKeys,
            .head_dim = kHeadDim,
            .scale = 0.5};
  }
  /// One value, term by term.
  double value(std::int64_t head, std::int64_t query, std::int64_t d) const {
    double sum = 0, weights = 0;
    for (std::int64_t key = 0; key < kKeys; ++key) {
      double score = 0;
      for (std::int64_t i = 0; i < kHeadDim; ++i) {
        score += double{q[static_cast<std::size_t>((head * kQueries + query) * kHeadDim + i)]} *
                 k[static_cast<std::size_t>((head * kHeadDim + i) * kKeys + key)];
      }
      const double weight = std::exp(0.5 * score);
      weights += weight;
      sum += weight * v[static_cast<std::size_t>((head * kKeys + key) * kHeadDim + d)];
    }
    return sum / weights;
  }
};

TEST(ExpectAttention, has_rows_and_sums_of_what_it_is_by_definition) {
  const Operands operands(11);
  Reference reference(5);
  reference.declare("out", DType::f32, kHeads * kQueries * kHeadDim);
  expect_attention(reference, "out", operands.attention(), 2);

  const ExpectedOutput& output = reference.outputs().at("out");
  EXPECT_EQ(output.rounding.length, kKeys);
  ASSERT_EQ(output.rows.size(), 5u);
  for (std::size_t i = 0; i < output.rows.size(); ++i) {
    for (std::int64_t d = 0; d < kHeadDim; ++d) {
      EXPECT_NEAR(output.values[i * kHeadDim + static_cast<std::size_t>(d)],
                  operands.value(output.rows[i] / kQueries, output.rows[i] % kQueries, d), 1e-12);
    }
  }
  ASSERT_EQ(output.sums.size(), static_cast<std::size_t>(kHeads * kQueries));
  for (std::int64_t row = 0; row < kHeads * kQueries; ++row) {
    double sum = 0;
    for (std::int64_t d = 0; d < kHeadDim; ++d) {
      sum += output.weights[static_cast<std::size_t>(d)] *
             operands.value(row / kQueries, row % kQueries, d);
    }
    EXPECT_NEAR(output.sums[static_cast<std::size_t>(row)], sum, 1e-12);
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline author
