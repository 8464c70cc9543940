// Is energy counted per token, and its absence said?
#include "study/bench/energy_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/bench/fake_bench.h"
#include "study/bench/small_bench.h"

namespace gauntlet::study::inline bench {
namespace {

TEST(EnergyUse, is_not_told_where_there_is_no_meter) {
  FakeBench fake;
  const auto told = measure_energy(fake.bench, {}, 0);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message, "not told by this machine");
}

/// A machine that uses a joule whenever somebody looks.
TEST(EnergyUse, is_given_per_token_of_each_batch) {
  double joules = 0;
  const EnergyMeter meter("a test", [&]() -> Expected<double> { return joules += 1; });
  SmallBench small(&meter);
  const auto told = measure_energy(small.bench, small.sizes(), 0);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->source, "a test");
  ASSERT_EQ(told->points.size(), 2u);
  for (const EnergyPoint& point : told->points) {
    EXPECT_DOUBLE_EQ(point.joules_per_token, 1 / static_cast<double>(point.batch))
        << "one look per step";
  }
}

}  // namespace
}  // namespace gauntlet::study::inline bench
