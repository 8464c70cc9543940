#include "lab/measure/compare_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "core/check.h"
#include "lab/author/product.h"

namespace gauntlet::lab::inline measure {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

template <class T>
Verdict compare(const std::vector<T>& got, const Reference& reference) {
  const BufferSpec spec{.name = "out",
                        .role = Role::output,
                        .type = dtype_of<T>(),
                        .count = static_cast<std::int64_t>(got.size())};
  return compare_output(
      spec, {reinterpret_cast<const unsigned char*>(got.data()), got.size() * sizeof(T)},
      reference.outputs().at("out"));
}

/// Expects 1, 2, 3, ... in float32.
class CompareOutput : public testing::Test {
 protected:
  explicit CompareOutput(std::size_t count = 20) : got_(count), reference_(1) {
    reference_.declare("out", DType::f32, static_cast<std::int64_t>(count));
    const auto values = reference_.values("out", {});
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = static_cast<double>(i + 1);
      got_[i] = static_cast<float>(i + 1);
    }
  }
  Verdict verdict() const { return compare(got_, reference_); }
  Verdict with(std::size_t at, float value) {
    std::vector<float> changed = got_;
    changed[at] = value;
    return compare(changed, reference_);
  }

  std::vector<float> got_;
  Reference reference_;
};

TEST_F(CompareOutput, accepts_what_is_right) {
  const Verdict right = verdict();
  EXPECT_TRUE(right.ok) << right.reason;
  EXPECT_EQ(right.max_error, 0);
  EXPECT_EQ(right.recomputed_percent, 100);
  EXPECT_EQ(right.seen_percent, 100);
}

TEST_F(CompareOutput, names_the_first_wrong_element_and_what_it_should_be) {
  got_[7] = 100;
  got_[15] = 100;
  const Verdict wrong = verdict();
  EXPECT_FALSE(wrong.ok);
  EXPECT_THAT(wrong.reason, StartsWith("gave a wrong result: out[7] is 100, expected 8 ± "));
}

TEST_F(CompareOutput, sees_the_first_and_the_last_element) {
  EXPECT_FALSE(with(0, 2).ok);
  EXPECT_FALSE(with(19, 2).ok);
}

TEST_F(CompareOutput, tells_poison_from_a_nan_of_the_sides_own) {
  float poison;
  std::memset(&poison, kPoison, sizeof(poison));
  EXPECT_EQ(with(3, poison).reason, "left part of its output unwritten: out[3] was never stored");
  EXPECT_EQ(with(3, std::numeric_limits<float>::quiet_NaN()).reason, "returned NaN at out[3]");
  EXPECT_THAT(with(3, INFINITY).reason, HasSubstr("out[3] is inf, expected 4"));
}

TEST_F(CompareOutput, accepts_no_nan_though_the_reference_has_it) {
  for (double& value : reference_.values("out", {})) value = std::nan("");
  EXPECT_FALSE(verdict().ok);
  std::ranges::fill(got_, std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(verdict().ok);
}

TEST_F(CompareOutput, accepts_no_infinity_though_the_reference_has_it) {
  for (double& value : reference_.values("out", {})) value = INFINITY;
  std::ranges::fill(got_, std::numeric_limits<float>::infinity());
  EXPECT_FALSE(verdict().ok) << "an overflow is not known to be the right one";
}

TEST_F(CompareOutput, allows_rounding_up_to_the_bound_and_no_further) {
  const double bound = Rounding{}.bound(8, 8);
  const auto off_by = [&](double error) { return with(7, static_cast<float>(8 + error)); };
  // Between 8 and 16 float32 has steps of 2^-20, and the bound is about five of them.
  const double step = 0x1p-20;
  const double inside = std::floor(bound / step) * step, outside = inside + step;
  const Verdict near = off_by(inside);
  EXPECT_TRUE(near.ok) << near.reason;
  EXPECT_NEAR(near.max_error, inside / 8, 1e-12);
  EXPECT_NEAR(near.bound, bound / 8, 1e-12);
  EXPECT_FALSE(off_by(outside).ok);
  EXPECT_FALSE(off_by(-outside).ok);
}

TEST_F(CompareOutput, measures_a_sum_that_cancels_by_its_terms) {
  for (double& value : reference_.values("out", {})) value = 0;
  const auto all_are = [&](float value) {
    std::ranges::fill(got_, value);
    return verdict();
  };
  EXPECT_FALSE(all_are(1e-30f).ok) << "without terms there is no error to allow";
  EXPECT_TRUE(all_are(0).ok);
  EXPECT_TRUE(all_are(-0.0f).ok);
  for (double& norm : reference_.norms("out")) norm = 1000;
  EXPECT_TRUE(all_are(1e-4f).ok);
  EXPECT_FALSE(all_are(1e-2f).ok);
}

TEST_F(CompareOutput, reports_the_element_nearest_to_its_own_bound) {
  // Relative to its bound the error of out[0] is the larger one.
  got_[0] += 2 * 0x1p-23f;
  got_[19] += 0x1p-19f;
  const Verdict close = verdict();
  EXPECT_TRUE(close.ok) << close.reason;
  EXPECT_NEAR(close.max_error, 2 * 0x1p-23, 1e-12);
}

TEST_F(CompareOutput, compares_exact_outputs_bit_for_bit) {
  Reference exact(1);
  exact.declare("out", DType::f32, 20);
  std::ranges::copy(got_, exact.exact<float>("out").begin());
  EXPECT_TRUE(compare(got_, exact).ok);
  got_[9] = std::nextafter(got_[9], 100.0f);
  EXPECT_THAT(compare(got_, exact).reason, HasSubstr("out[9] is 10.000001, expected exactly 10"));
  std::memset(&got_[9], kPoison, sizeof(float));
  EXPECT_THAT(compare(got_, exact).reason, HasSubstr("out[9] was never stored"));
}

TEST_F(CompareOutput, tells_zeros_apart_where_bits_are_asked_for) {
  Reference exact(1);
  exact.declare("out", DType::f32, 1);
  exact.exact<float>("out")[0] = 0.0f;
  EXPECT_FALSE(compare(std::vector<float>{-0.0f}, exact).ok);
}

TEST_F(CompareOutput, sees_all_of_a_buffer_that_is_split_over_threads) {
  constexpr std::size_t kCount = 20001;
  Reference reference(1);
  reference.declare("out", DType::i32, kCount);
  std::vector<std::int32_t> got(kCount, 5);
  std::ranges::fill(reference.exact<std::int32_t>("out"), 5);
  EXPECT_TRUE(compare(got, reference).ok);
  for (const std::size_t at : {0, 9999, 10000, 20000}) {
    std::vector<std::int32_t> wrong = got;
    wrong[at] = 6;
    EXPECT_THAT(compare(wrong, reference).reason,
                HasSubstr("out[" + std::to_string(at) + "] is 6"));
  }
}

TEST_F(CompareOutput, reads_bf16) {
  Reference reference(1);
  reference.declare("out", DType::bf16, 3);
  const auto values = reference.values("out", {.result = DType::bf16});
  values[0] = 1, values[1] = -2.5, values[2] = 3;
  std::vector<std::uint16_t> got = {0x3F80, 0xC020, 0x4040};
  const auto verdict_of = [&] {
    return compare_output({.name = "out", .type = DType::bf16, .count = 3},
                          {reinterpret_cast<const unsigned char*>(got.data()), 6},
                          reference.outputs().at("out"));
  };
  EXPECT_TRUE(verdict_of().ok) << verdict_of().reason;
  values[1] = -2.507;
  EXPECT_TRUE(verdict_of().ok) << "half a step is what storing it costs";
  got[1] = 0xC040;
  EXPECT_THAT(verdict_of().reason, HasSubstr("out[1] is -3"));
  got[1] = 0xFFFF;
  EXPECT_THAT(verdict_of().reason, HasSubstr("never stored"));
}

/// Outputs of every type a pair can declare.
template <class T>
class CompareTyped : public testing::Test {};
using OutputTypes =
    testing::Types<double, float, std::int64_t, std::uint64_t, std::int32_t, std::uint32_t,
                   std::int16_t, std::uint16_t, std::int8_t, std::uint8_t>;
TYPED_TEST_SUITE(CompareTyped, OutputTypes);

TYPED_TEST(CompareTyped, finds_the_wrong_element_exactly_and_within_bounds) {
  using T = TypeParam;
  Reference rounded(1), exact(1);
  std::vector<T> got(20);
  for (Reference* reference : {&rounded, &exact}) reference->declare("out", dtype_of<T>(), 20);
  const auto values = rounded.values("out", {});
  const auto bits = exact.exact<T>("out");
  for (std::size_t i = 0; i < 20; ++i) {
    got[i] = bits[i] = static_cast<T>(3 * i + 1);
    values[i] = static_cast<double>(3 * i + 1);
  }
  EXPECT_TRUE(compare(got, rounded).ok);
  EXPECT_TRUE(compare(got, exact).ok);
  got[13] = static_cast<T>(got[13] + 1);
  EXPECT_THAT(compare(got, rounded).reason, HasSubstr("out[13] is 41, expected 40"));
  EXPECT_THAT(compare(got, exact).reason, HasSubstr("out[13] is 41, expected exactly 40"));
}

/// A product of which one row in sixteen is recomputed and every row added up.
class CompareRows : public testing::Test {
 protected:
  static constexpr std::int64_t kRows = 64, kColumns = 96, kTerms = 50;

  CompareRows() { multiply(1); }

  void multiply(std::uint64_t seed, Rounding rounding = {}) {
    const Random random(seed);
    a_.resize(kRows * kTerms);
    b_.resize(kTerms * kColumns);
    for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = random.uniform(-1, 1, i);
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = random.uniform(-1, 1, a_.size() + i);
    got_.assign(kRows * kColumns, 0);
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t k = 0; k < kTerms; ++k) {
        for (std::int64_t j = 0; j < kColumns; ++j)
          at(i, j) += a_[i * kTerms + k] * b_[k * kColumns + j];
      }
    }
    reference_ = Reference(seed + 100);
    reference_.declare("out", DType::f32, kRows * kColumns);
    expect_product(reference_, "out",
                   {.a = a_.data(), .b = b_.data(), .m = kRows, .n = kColumns, .k = kTerms},
                   rounding, 16);
  }
  float& at(std::int64_t row, std::int64_t column) {
    return got_[static_cast<std::size_t>(row * kColumns + column)];
  }
  /// A row that is not among the recomputed ones.
  std::int64_t unseen_row(std::int64_t from = 0) const {
    const auto& rows = reference_.outputs().at("out").rows;
    while (std::ranges::find(rows, from) != rows.end()) ++from;
    return from;
  }
  Verdict verdict() const { return compare(got_, reference_); }

  std::vector<float> a_, b_, got_;
  Reference reference_{1};
};

TEST_F(CompareRows, say_what_was_recomputed_and_what_was_seen) {
  const Verdict right = verdict();
  EXPECT_TRUE(right.ok) << right.reason;
  EXPECT_EQ(right.recomputed_percent, 100.0 * 4 / 64);
  EXPECT_EQ(right.seen_percent, 100);
}

TEST_F(CompareRows, name_a_wrong_element_of_a_recomputed_row) {
  const std::int64_t row = reference_.outputs().at("out").rows[2];
  at(row, 95) += 0.01f;
  EXPECT_THAT(verdict().reason, HasSubstr("out[" + std::to_string(row * kColumns + 95) + "] is"));
}

TEST_F(CompareRows, find_one_wrong_element_wherever_it_is) {
  const std::vector<float> right = got_;
  for (std::int64_t row = unseen_row(); row < kRows; row = unseen_row(row + 1)) {
    for (const std::int64_t column : {std::int64_t{0}, kColumns / 2, kColumns - 1}) {
      got_ = right;
      at(row, column) += 0.001f;
      EXPECT_THAT(verdict().reason, StartsWith("gave a wrong result: row " + std::to_string(row) +
                                               " of 'out' does not add up to what it must"));
    }
  }
}

TEST_F(CompareRows, find_a_row_that_repeats_another) {
  const std::int64_t row = unseen_row(20), other = unseen_row(row + 1);
  std::copy_n(&at(row, 0), kColumns, &at(other, 0));
  EXPECT_THAT(verdict().reason, HasSubstr("row " + std::to_string(other)));
}

TEST_F(CompareRows, find_two_elements_that_changed_places) {
  const std::int64_t row = unseen_row();
  std::swap(at(row, 3), at(row, 4));
  EXPECT_FALSE(verdict().ok);
}

TEST_F(CompareRows, find_a_tile_that_was_skipped) {
  const std::vector<float> old = got_;
  multiply(2);
  ASSERT_NE(old, got_);
  const std::vector<float> now = got_;
  const std::int64_t first = unseen_row(16);
  for (const bool stale : {false, true}) {
    got_ = now;
    for (std::int64_t row = first; row < first + 4; ++row) {
      if (row != unseen_row(row)) continue;
      for (std::int64_t column = 32; column < 40; ++column) {
        at(row, column) = stale ? old[static_cast<std::size_t>(row * kColumns + column)] : 0;
      }
    }
    EXPECT_THAT(verdict().reason, HasSubstr("row " + std::to_string(first))) << stale;
  }
}

TEST_F(CompareRows, find_poison_and_nan_in_any_row) {
  const std::int64_t row = unseen_row();
  const std::string where = "out[" + std::to_string(row * kColumns) + "]";
  at(row, 0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(verdict().reason, "returned NaN at " + where);
  std::memset(&at(row, 0), kPoison, sizeof(float));
  EXPECT_THAT(verdict().reason, HasSubstr(where + " was never stored"));
}

TEST_F(CompareRows, do_not_let_a_huge_element_widen_its_own_bound) {
  // With eight-bit operands the bound of a row is as large as its values.
  for (const DType operands : {DType::f32, DType::bf16, DType::f8e4m3, DType::f8e5m2}) {
    multiply(3, {.operands = operands});
    EXPECT_TRUE(verdict().ok) << verdict().reason;
    at(unseen_row(), 5) = 1e30f;
    EXPECT_FALSE(verdict().ok) << name_of(operands);
  }
}

TEST_F(CompareRows, raise_no_false_alarm_over_many_seeds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    multiply(seed);
    ASSERT_TRUE(verdict().ok) << "seed " << seed << ": " << verdict().reason;
  }
}

TEST(CompareOutputOf, a_reference_that_says_nothing_of_most_rows_is_a_fault) {
  Reference reference(1);
  reference.declare("out", DType::f32, 100);
  std::ranges::fill(reference.rows("out", 10, {3}, {}), 0.0);
  EXPECT_THROW(compare(std::vector<float>(100, 0.0f), reference), Fault);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
