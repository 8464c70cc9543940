#include "core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace gauntlet {
namespace {

TEST(Random, depends_on_seed_and_index_alone) {
  const Random a(7), b(7), other(8);
  EXPECT_EQ(a.bits(1000), b.bits(1000));
  EXPECT_NE(a.bits(1000), a.bits(1001));
  EXPECT_NE(a.bits(1000), other.bits(1000));
}

TEST(Random, steps_through_its_own_stream) {
  Random walking(7);
  const Random still(7);
  EXPECT_EQ(walking.next(), still.bits(0));
  EXPECT_EQ(walking.next_below(10), still.below(10, 1));
  EXPECT_EQ(walking.next(), still.bits(2));
}

TEST(Random, matches_splitmix64) {
  // The first outputs of the published generator for seed 0.
  EXPECT_EQ(mix64(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(mix64(0x9E3779B97F4A7C15u), 0x6E789E6AA1B965F4u);
}

TEST(Random, permutes_any_size_without_repeats) {
  for (const std::uint64_t size : {1u, 2u, 3u, 7u, 64u, 100u, 4097u}) {
    const Random random(size);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t value = random.permuted(size, i);
      ASSERT_LT(value, size);
      seen.insert(value);
    }
    EXPECT_EQ(seen.size(), size);
  }
}

TEST(Random, permutes_by_its_seed_and_leaves_no_neighbours_together) {
  constexpr std::uint64_t kSize = 10000;
  const Random random(5), other(6);
  int same = 0, close = 0;
  for (std::uint64_t i = 0; i + 1 < kSize; ++i) {
    const auto here = static_cast<std::int64_t>(random.permuted(kSize, i));
    const auto next = static_cast<std::int64_t>(random.permuted(kSize, i + 1));
    same += random.permuted(kSize, i) == other.permuted(kSize, i);
    close += std::abs(next - here) <= 50;
  }
  // One pair of 10,000 agrees by chance; 100 of them are this close.
  EXPECT_LT(same, 10);
  EXPECT_LT(close, 300);
}

TEST(Random, stays_below_its_bound_and_reaches_every_value) {
  Random random(3);
  std::vector<int> seen(7, 0);
  for (int i = 0; i < 7000; ++i) {
    const std::uint64_t value = random.next_below(7);
    ASSERT_LT(value, 7u);
    ++seen[value];
  }
  // Six standard deviations of a binomial(7000, 1/7).
  for (int count : seen) EXPECT_NEAR(count, 1000, 176);
  EXPECT_EQ(Random(3).below(1, 5), 0u);
}

TEST(Random, fills_the_unit_interval_evenly) {
  const Random random(11);
  double sum = 0, squares = 0;
  constexpr int kCount = 20000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const float value = random.unit(i);
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.013);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.013);
}

TEST(Random, keeps_uniform_values_in_their_range) {
  const Random random(12);
  float low = 10, high = -10;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const float value = random.uniform(-2, 3, i);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_GE(low, -2.0f);
  EXPECT_LT(low, -1.9f);
  EXPECT_LE(high, 3.0f);
  EXPECT_GT(high, 2.9f);
}

TEST(Random, changes_half_of_the_bits_with_the_next_index_and_seed) {
  int by_index = 0, by_seed = 0;
  constexpr int kPairs = 1000;
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    by_index += std::popcount(Random(5).bits(i) ^ Random(5).bits(i + 1));
    by_seed += std::popcount(Random(i).bits(0) ^ Random(i + 1).bits(0));
  }
  EXPECT_NEAR(static_cast<double>(by_index) / kPairs, 32, 1);
  EXPECT_NEAR(static_cast<double>(by_seed) / kPairs, 32, 1);
}

TEST(Random, does_not_repeat_within_a_large_buffer) {
  const Random random(1);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 20000; ++i) seen.insert(random.bits(i));
  EXPECT_EQ(seen.size(), 20000u);
}

}  // namespace
}  // namespace gauntlet
