#include "lab/author/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace gauntlet::lab::inline author {
namespace {

Reference with_output(std::int64_t count, DType type = DType::f32) {
  Reference reference(1);
  reference.declare("out", type, count);
  return reference;
}

constexpr double kF32 = 0x1p-24;

TEST(Rounding, allows_an_elementwise_result_a_few_roundoffs) {
  const double bound = Rounding{.length = 1}.bound(1, 1);
  EXPECT_GT(bound, 4 * kF32);
  EXPECT_LT(bound, 6 * kF32);
}

TEST(Rounding, grows_with_the_square_root_of_the_length) {
  // Without cancellation and with it: the value counts beside the terms.
  for (const double value : {0.0, 1.0}) {
    const double some = Rounding{.length = 100}.bound(1, value);
    const double many = Rounding{.length = 10000}.bound(1, value);
    EXPECT_NEAR(many / some, 10, 0.5);
  }
}

TEST(Rounding, scales_with_the_terms_and_not_with_a_sum_that_cancelled) {
  const Rounding sum{.length = 64};
  EXPECT_NEAR(sum.bound(8, 0) / sum.bound(1, 0), 8, 1e-9);
  EXPECT_EQ(sum.bound(0, 0), 0);
}

TEST(Rounding, is_near_what_float_sums_really_lose) {
  // Sums of 1,000 products in float, against float64: the bound is eight of their standard
  // deviations, so the largest error of 300 sums is some three eighths of it.
  const Random random(11);
  constexpr int kTerms = 1000;
  double worst = 0;
  for (std::uint64_t sum = 0; sum < 300; ++sum) {
    float rounded = 0;
    double exact = 0, squares = 0;
    for (std::uint64_t i = 0; i < kTerms; ++i) {
      const float a = random.uniform(-1, 1, 2 * (sum * kTerms + i));
      const float b = random.uniform(-1, 1, 2 * (sum * kTerms + i) + 1);
      rounded += a * b;
      exact += double{a} * b;
      squares += double{a} * b * a * b;
    }
    const double bound = Rounding{.length = kTerms}.bound(std::sqrt(squares), exact);
    worst = std::max(worst, std::abs(static_cast<double>(rounded) - exact) / bound);
  }
  EXPECT_GT(worst, 0.15);
  EXPECT_LT(worst, 0.75);
}

TEST(Rounding, refuses_operands_of_the_next_lower_precision) {
  // A product with operands cut to bf16 is outside of what tf32 allows, in one element of a
  // hundred.
  const auto cut = [](float value, int bits) {
    return std::ldexp(std::round(std::ldexp(value, bits)), -bits);
  };
  const Random random(12);
  constexpr int kTerms = 3072;
  int outside = 0;
  for (std::uint64_t sum = 0; sum < 2000; ++sum) {
    double exact = 0, lower = 0, squares = 0;
    for (std::uint64_t i = 0; i < kTerms; ++i) {
      const float a = random.uniform(0.5f, 1, 2 * (sum * kTerms + i));
      const float b = random.uniform(-1, -0.5f, 2 * (sum * kTerms + i) + 1) *
                      static_cast<float>(random.below(2, sum * kTerms + i) == 0 ? 1 : -1);
      exact += double{a} * b;
      lower += double{cut(a, 8)} * cut(b, 8);
      squares += double{a} * b * a * b;
    }
    const Rounding tf32{.operands = DType::tf32, .length = kTerms};
    outside += std::abs(lower - exact) > tf32.bound(std::sqrt(squares), exact);
  }
  EXPECT_GE(outside, 5);
}

TEST(Rounding, adds_what_operands_and_result_lose) {
  const double plain = Rounding{}.bound(1, 0), f16 = Rounding{.operands = DType::f16}.bound(1, 0);
  EXPECT_NEAR(Rounding{.operands = DType::bf16}.bound(1, 0) / f16, 8, 0.01);
  EXPECT_GT(f16, 1000 * plain);
  EXPECT_NEAR(Rounding{.result = DType::bf16}.bound(1, 1) - Rounding{}.bound(1, 1), 0x1p-8 - kF32,
              1e-12);
}

TEST(Rounding, allows_a_function_the_ulps_its_library_states) {
  const double without = Rounding{}.bound(1, 2), with = Rounding{.ulps = 4}.bound(1, 2);
  EXPECT_NEAR(with - without, 4 * 2 * kF32 * 2, 1e-15);
}

TEST(Rounding, trusts_f64_far_more_than_f32) {
  const Rounding f64{.operands = DType::f64, .accumulate = DType::f64, .result = DType::f64};
  EXPECT_LT(f64.bound(1, 1), Rounding{}.bound(1, 1) * 1e-8);
  EXPECT_GT(f64.bound(1, 1), 0);
}

TEST(Reference, gives_room_for_every_element) {
  Reference reference = with_output(10);
  EXPECT_EQ(reference.values("out", {}).size(), 10u);
  EXPECT_EQ(reference.norms("out").size(), 10u);
  EXPECT_EQ(reference.outputs().at("out").compare, ExpectedOutput::Compare::rounded);
  Reference exact = with_output(10, DType::i16);
  EXPECT_EQ(exact.exact<std::int16_t>("out").size(), 10u);
  EXPECT_EQ(exact.outputs().at("out").compare, ExpectedOutput::Compare::exact);
}

TEST(Reference, keeps_chosen_rows) {
  Reference reference = with_output(12);
  EXPECT_EQ(reference.rows("out", 4, {0, 2}, {}).size(), 8u);
  const ExpectedOutput& output = reference.outputs().at("out");
  EXPECT_EQ(output.rows, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(output.row_length, 4);
}

TEST(Reference, weighs_every_element_of_a_row_and_keeps_a_sum_for_each_row) {
  Reference reference = with_output(12);
  reference.rows("out", 4, {1}, {});
  const RowSums sums = reference.row_sums("out");
  ASSERT_EQ(sums.weights.size(), 4u);
  EXPECT_EQ(sums.sums.size(), 3u);
  EXPECT_EQ(sums.squares.size(), 3u);
  for (const double weight : sums.weights) {
    EXPECT_GE(std::abs(weight), 0.5);
    EXPECT_LE(std::abs(weight), 1);
  }
  EXPECT_TRUE(reference.outputs().at("out").has_row_sums);
}

TEST(Reference, draws_other_weights_for_other_inputs) {
  Reference reference = with_output(64);
  reference.rows("out", 64, {0}, {});
  const auto first = reference.row_sums("out").weights[0];
  reference.restart(2);
  reference.rows("out", 64, {0}, {});
  EXPECT_NE(reference.row_sums("out").weights[0], first);
}

TEST(Reference, faults_a_reference_that_does_not_fit_the_pair) {
  Reference reference = with_output(12);
  EXPECT_THROW(reference.values("other", {}), Fault);
  EXPECT_THROW(reference.exact<std::int16_t>("out"), Fault);
  EXPECT_THROW(reference.rows("out", 5, {0}, {}), Fault);
  EXPECT_THROW(reference.rows("out", 4, {3}, {}), Fault);
  EXPECT_THROW(reference.rows("out", 4, {-1}, {}), Fault);
  EXPECT_THROW(with_output(12).norms("out"), Fault);
  EXPECT_THROW(with_output(12).row_sums("out"), Fault);
}

TEST(Reference, faults_one_that_checks_no_row_at_all) {
  EXPECT_THROW(with_output(12).rows("out", 4, {}, {}), Fault);
}

TEST(Stratified, takes_one_index_from_each_stratum) {
  Reference reference(3);
  const auto rows = reference.stratified(100, 32);
  ASSERT_EQ(rows.size(), 4u);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_GE(rows[static_cast<std::size_t>(i)], 32 * i);
    EXPECT_LT(rows[static_cast<std::size_t>(i)], std::min<std::int64_t>(32 * (i + 1), 100));
  }
}

TEST(Stratified, moves_with_the_seed_so_that_no_row_is_safe) {
  EXPECT_EQ(Reference(3).stratified(1000, 100), Reference(3).stratified(1000, 100));
  EXPECT_NE(Reference(3).stratified(1000, 100), Reference(4).stratified(1000, 100));
}

TEST(Stratified, refuses_strata_without_height) {
  EXPECT_THROW(Reference(3).stratified(10, 0), Fault);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
