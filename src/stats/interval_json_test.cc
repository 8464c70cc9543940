#include "stats/interval_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gauntlet::stats {
namespace {

using nlohmann::json;

TEST(IntervalJson, comes_back_as_it_went) {
  const Interval interval{.value = 1.25, .lo = 1.0 / 3, .hi = 1e9};
  const json written = to_json(interval);
  EXPECT_EQ(written, json::parse(R"({"value": 1.25, "lo": 0.3333333333333333, "hi": 1e9})"));
  const Interval read = interval_from_json(json::parse(written.dump()));
  EXPECT_EQ(read.value, interval.value);
  EXPECT_EQ(read.lo, interval.lo);
  EXPECT_EQ(read.hi, interval.hi);
}

TEST(IntervalJson, writes_null_for_what_is_not_known) {
  const json written = to_json({.value = 2});
  EXPECT_EQ(written.dump(), R"({"hi":null,"lo":null,"value":2.0})");
  const Interval read = interval_from_json(written);
  EXPECT_EQ(read.value, 2);
  EXPECT_FALSE(read.known());
}

TEST(IntervalJson, reads_the_median_of_older_files) {
  const Interval read = interval_from_json({{"median", 2.0}, {"lo", 1.5}, {"hi", 2.5}});
  EXPECT_EQ(read.value, 2);
  EXPECT_EQ(read.lo, 1.5);
  EXPECT_EQ(read.hi, 2.5);
}

TEST(IntervalJson, refuses_what_is_none) {
  EXPECT_THROW(interval_from_json({{"value", "two"}}), json::exception);
  EXPECT_THROW(interval_from_json({{"lo", 1}, {"hi", 2}}), json::exception);
  EXPECT_THROW(interval_from_json(json(2.0)), json::exception);
}

}  // namespace
}  // namespace gauntlet::stats
