#include "load/workload/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace gauntlet::load::inline workload {
namespace {

std::vector<double> sample(const std::string& text, int count) {
  const auto lengths = Lengths::parse(text, "--prompt-tokens");
  EXPECT_TRUE(lengths) << text;
  Variates variates(5, 0);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<double>(lengths->draw(variates)));
  return values;
}

TEST(Lengths, are_what_a_count_says) {
  EXPECT_THAT(sample("128", 3), testing::ElementsAre(128, 128, 128));
}

TEST(Lengths, reach_both_ends_of_a_uniform_range) {
  const auto values = sample("uniform:3..6", 4000);
  EXPECT_EQ(std::ranges::min(values), 3);
  EXPECT_EQ(std::ranges::max(values), 6);
  for (const double length : {3, 4, 5, 6}) {
    EXPECT_NEAR(static_cast<double>(std::ranges::count(values, length)), 1000, 150);
  }
}

TEST(Lengths, have_the_median_and_sigma_of_their_logarithms) {
  constexpr int kCount = 40000;
  auto values = sample("lognormal:128,0.8", kCount);
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += std::log(value / 128);
    squares += std::log(value / 128) * std::log(value / 128);
  }
  EXPECT_NEAR(sum / kCount, 0, 5 * 0.8 / std::sqrt(kCount));
  EXPECT_NEAR(std::sqrt(squares / kCount), 0.8, 5 * 0.8 / std::sqrt(2.0 * kCount));
}

TEST(Lengths, stay_below_a_maximum_without_piling_up_at_it) {
  const auto values = sample("lognormal:100,1,150", 10000);
  EXPECT_LE(std::ranges::max(values), 150);
  EXPECT_LT(std::ranges::count(values, 150.0), 200);
}

TEST(Lengths, are_at_least_one) { EXPECT_GE(std::ranges::min(sample("lognormal:1,3", 1000)), 1); }

TEST(Lengths, refuse_what_makes_no_sense) {
  for (const char* text :
       {"", "0", "-3", "1.5", "12x", "uniform:", "uniform:5", "uniform:6..5", "uniform:0..5",
        "lognormal:128", "lognormal:128,", "lognormal:0,1", "lognormal:128,-1", "lognormal:128,9",
        "lognormal:128,0.8,64", "lognormal:nan,1", "normal:5,1", "99999999999"}) {
    const auto lengths = Lengths::parse(text, "--prompt-tokens");
    ASSERT_FALSE(lengths) << text;
    EXPECT_EQ(lengths.error().kind, ErrorKind::wrong_use);
    EXPECT_THAT(lengths.error().message, testing::HasSubstr("--prompt-tokens"));
  }
}

}  // namespace
}  // namespace gauntlet::load::inline workload
