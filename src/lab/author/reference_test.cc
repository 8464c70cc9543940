#include "lab/author/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/check.h"

namespace gauntlet::lab::inline author {
namespace {

Reference with_output(std::int64_t count, DType type = DType::f32) {
  Reference reference(1);
  reference.declare("out", type, count);
  return reference;
}

TEST(Rounding, allows_an_elementwise_result_a_few_roundoffs) {
  const double bound = Rounding{.length = 1}.bound();
  EXPECT_GT(bound, 8 * 0x1p-24);
  EXPECT_LT(bound, 10 * 0x1p-24);
}

TEST(Rounding, grows_with_the_square_root_of_the_length) {
  const double one = Rounding{.length = 1}.bound(), many = Rounding{.length = 10000}.bound();
  EXPECT_NEAR(many / one, 100, 15);
}

TEST(Rounding, adds_what_operands_and_result_lose) {
  const double plain = Rounding{}.bound();
  EXPECT_NEAR(Rounding{.operands = DType::bf16}.bound() - plain, 2 * 0x1p-8, 1e-12);
  EXPECT_NEAR(Rounding{.operands = DType::tf32}.bound() - plain, 2 * 0x1p-11, 1e-12);
  EXPECT_NEAR(Rounding{.result = DType::bf16}.bound() - plain, 0x1p-8 - 0x1p-24, 1e-12);
  EXPECT_NEAR(Rounding{.accumulate = DType::f16}.bound() - plain, 8 * (0x1p-11 - 0x1p-24), 1e-12);
}

TEST(Rounding, trusts_f64_far_more_than_f32) {
  const Rounding f64{.operands = DType::f64, .accumulate = DType::f64, .result = DType::f64};
  EXPECT_LT(f64.bound(), Rounding{}.bound() * 1e-8);
  EXPECT_GT(f64.bound(), 0);
}

TEST(Reference, gives_room_for_every_element) {
  Reference reference = with_output(10);
  EXPECT_EQ(reference.values("out", {}).size(), 10u);
  EXPECT_EQ(reference.magnitudes("out").size(), 10u);
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

TEST(Reference, faults_a_reference_that_does_not_fit_the_pair) {
  Reference reference = with_output(12);
  EXPECT_THROW(reference.values("other", {}), Fault);
  EXPECT_THROW(reference.exact<std::int16_t>("out"), Fault);
  EXPECT_THROW(reference.rows("out", 5, {0}, {}), Fault);
  EXPECT_THROW(reference.rows("out", 4, {3}, {}), Fault);
  EXPECT_THROW(reference.rows("out", 4, {-1}, {}), Fault);
  EXPECT_THROW(with_output(12).magnitudes("out"), Fault);
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
