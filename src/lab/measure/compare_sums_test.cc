// Is every honest way to add up accepted, and the next lower precision refused?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "core/os/threads.h"
#include "lab/measure/compare_output.h"

namespace gauntlet::lab::inline measure {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSums = 1024;  // enough for the test of their average

/// Rounds to nearest, keeping so many bits after the first: 7 for bf16, 10 for tf32.
float with_bits(float value, int bits) {
  const int dropped = 23 - bits;
  const auto raw = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = (1u << (dropped - 1)) - 1 + ((raw >> dropped) & 1);
  return std::bit_cast<float>((raw + half) >> dropped << dropped);
}

using Terms = std::vector<float>;
using Order = float (*)(const Terms&);

float sequential(const Terms& terms) {
  float sum = 0;
  for (const float term : terms) sum += term;
  return sum;
}

float pairwise_from(const float* terms, std::size_t count) {
  if (count == 1) return terms[0];
  return pairwise_from(terms, count / 2) + pairwise_from(terms + count / 2, count - count / 2);
}
float pairwise(const Terms& terms) { return pairwise_from(terms.data(), terms.size()); }

float eight_accumulators(const Terms& terms) {
  float sums[8] = {};
  for (std::size_t i = 0; i < terms.size(); ++i) sums[i % 8] += terms[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

float in_bf16(const Terms& terms) {
  float sum = 0;
  for (const float term : terms) sum = with_bits(sum + term, 7);
  return sum;
}

struct Data {
  float low = -1, high = 1;
};

/// Dot products of random vectors, as float32 gives them by an order and with operands of so many
/// bits, against what is claimed.
struct Sums {
  std::uint64_t seed = 1;
  std::int64_t length = 1;
  Data data = {};
  int operand_bits = 23;
  std::function<Order(std::int64_t sum)> order = [](std::int64_t) -> Order { return sequential; };
  Rounding claimed = {};

  Verdict verdict() const {
    Reference reference(seed);
    reference.declare("out", DType::f32, kSums);
    Rounding rounding = claimed;
    rounding.length = length;
    const auto values = reference.values("out", rounding);
    const auto norms = reference.norms("out");
    std::vector<float> got(kSums);
    const Random random(seed);
    parallel_for(
        kSums,
        [&](std::int64_t begin, std::int64_t end) {
          Terms terms(static_cast<std::size_t>(length));
          for (std::int64_t sum = begin; sum < end; ++sum) {
            double exact = 0, squares = 0;
            for (std::int64_t k = 0; k < length; ++k) {
              const auto index = static_cast<std::uint64_t>(2 * (sum * length + k));
              const float a = random.uniform(data.low, data.high, index);
              const float b = random.uniform(data.low, data.high, index + 1);
              const double term = double{a} * b;
              exact += term;
              squares += term * term;
              terms[static_cast<std::size_t>(k)] =
                  operand_bits == 23 ? a * b
                                     : with_bits(a, operand_bits) * with_bits(b, operand_bits);
            }
            const auto at = static_cast<std::size_t>(sum);
            values[at] = exact;
            norms[at] = std::sqrt(squares);
            got[at] = order(sum)(terms);
          }
        },
        16);
    return compare_output(
        {.name = "out", .role = Role::output, .type = DType::f32, .count = kSums},
        {reinterpret_cast<const unsigned char*>(got.data()), kSums * sizeof(float)},
        reference.outputs().at("out"));
  }
};

class HonestSums : public testing::TestWithParam<std::int64_t> {};

TEST_P(HonestSums, are_accepted_in_every_order_and_for_data_of_either_kind) {
  const std::int64_t length = GetParam();
  const std::uint64_t seeds = length <= 100 ? 20 : 3;
  for (const Order order : {sequential, pairwise, eight_accumulators}) {
    for (const Data data : {Data{-1, 1}, Data{0, 1}, Data{0.5f, 1}}) {
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        const Verdict verdict = Sums{
            .seed = 1000 * seed + static_cast<std::uint64_t>(length),
            .length = length,
            .data = data,
            .order = [&](std::int64_t) {
              return order;
            }}.verdict();
        ASSERT_TRUE(verdict.ok) << "seed " << seed << ", from " << data.low << ": "
                                << verdict.reason;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfLength, HonestSums,
                         testing::Values(1, 2, 3, 7, 8, 9, 64, 100, 1000, 5000));

TEST(HonestSumsOf, rounded_operands_are_accepted_where_they_are_claimed) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const Data data : {Data{-1, 1}, Data{0, 1}}) {
      Sums sums{.seed = seed, .length = 300, .data = data};
      sums.operand_bits = 10;
      sums.claimed = {.operands = DType::tf32};
      EXPECT_TRUE(sums.verdict().ok) << sums.verdict().reason;
      sums.operand_bits = 7;
      sums.claimed = {.operands = DType::bf16};
      EXPECT_TRUE(sums.verdict().ok) << sums.verdict().reason;
    }
  }
}

TEST(LowerPrecision, is_refused_for_tf32_when_operands_are_bf16) {
  for (const std::int64_t length : {16, 300, 3000}) {
    const Sums sums{
        .seed = 5, .length = length, .operand_bits = 7, .claimed = {.operands = DType::tf32}};
    EXPECT_FALSE(sums.verdict().ok) << length;
  }
}

TEST(LowerPrecision, is_told_by_the_average_where_no_single_element_is_far_off) {
  const Sums sums{
      .seed = 5, .length = 300, .operand_bits = 8, .claimed = {.operands = DType::tf32}};
  const Verdict verdict = sums.verdict();
  EXPECT_FALSE(verdict.ok);
  EXPECT_THAT(verdict.reason, HasSubstr("is less precise than it claims: the errors of 'out' are"));
}

TEST(LowerPrecision, is_refused_for_float32_when_operands_are_tf32) {
  for (const std::int64_t length : {1, 300, 5000}) {
    EXPECT_FALSE((Sums{.seed = 6, .length = length, .operand_bits = 10}.verdict().ok)) << length;
  }
}

TEST(LowerPrecision, is_refused_when_half_of_the_sums_are_kept_in_bf16) {
  for (const std::int64_t length : {16, 300, 3000}) {
    const Sums sums{.seed = 7, .length = length, .order = [](std::int64_t sum) {
                      return sum % 2 == 0 ? sequential : in_bf16;
                    }};
    EXPECT_FALSE(sums.verdict().ok) << length;
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
