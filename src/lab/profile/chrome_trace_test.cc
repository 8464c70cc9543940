#include "lab/profile/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gauntlet::lab::inline profile {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kBoot = 1'700'000'000'000'000'000;

TraceRow stream(std::int64_t id) {
  return {.process = 1,
          .thread = id,
          .process_name = "GPU 0",
          .thread_name = "stream " + std::to_string(id)};
}

std::vector<Json> of_phase(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

TEST(ChromeTrace, counts_microseconds_from_the_earliest_event) {
  const Json trace = Json::parse(
      chrome_trace({{.name = "b", .row = stream(7), .start_ns = kBoot + 2500, .duration_ns = 1500},
                    {.name = "a", .row = stream(7), .start_ns = kBoot, .duration_ns = 1}},
                   0));
  const auto events = of_phase(trace, "X");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_DOUBLE_EQ(events[0]["ts"], 2.5);
  EXPECT_DOUBLE_EQ(events[0]["dur"], 1.5);
  EXPECT_DOUBLE_EQ(events[1]["ts"], 0);
}

TEST(ChromeTrace, names_each_row_once) {
  const Json trace =
      Json::parse(chrome_trace({{.name = "a", .row = stream(7), .start_ns = 1, .duration_ns = 1},
                                {.name = "b", .row = stream(13), .start_ns = 2, .duration_ns = 1},
                                {.name = "c", .row = stream(7), .start_ns = 3, .duration_ns = 1}},
                               0));
  std::vector<std::string> names;
  for (const Json& row : of_phase(trace, "M")) names.push_back(row["args"]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"GPU 0", "stream 7", "stream 13"}));
}

TEST(ChromeTrace, draws_a_moment_where_there_is_no_duration) {
  const Json trace =
      Json::parse(chrome_trace({{.name = "now", .row = stream(7), .start_ns = 1}}, 0));
  EXPECT_EQ(of_phase(trace, "X").size(), 0u);
  ASSERT_EQ(of_phase(trace, "i").size(), 1u);
  EXPECT_EQ(of_phase(trace, "i")[0]["s"], "t");
}

TEST(ChromeTrace, keeps_numbers_as_numbers_in_the_arguments) {
  const Json trace = Json::parse(chrome_trace({{.name = "k",
                                                .row = stream(7),
                                                .start_ns = 1,
                                                .duration_ns = 1,
                                                .args = {{"grid", std::string("8x1x1")},
                                                         {"registers per thread", std::int64_t{40}},
                                                         {"GB/s", 3.5}}}},
                                              0));
  const Json args = of_phase(trace, "X").at(0)["args"];
  EXPECT_EQ(args["grid"], "8x1x1");
  EXPECT_EQ(args["registers per thread"], 40);
  EXPECT_EQ(args["GB/s"], 3.5);
}

TEST(ChromeTrace, says_how_many_records_were_dropped) {
  EXPECT_EQ(Json::parse(chrome_trace({}, 12))["otherData"]["dropped_records"], 12);
}

TEST(ChromeTrace, is_valid_json_even_for_a_name_that_is_not_utf8) {
  const std::string text =
      chrome_trace({{.name = "\xff\xfe", .row = stream(7), .start_ns = 1, .duration_ns = 1}}, 0);
  EXPECT_TRUE(Json::accept(text));
}

}  // namespace
}  // namespace gauntlet::lab::inline profile
