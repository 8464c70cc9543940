#include "lab/profile/trace_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::lab::inline profile {
namespace {

using testing::IsEmpty;

TraceEvent work(const std::string& category, std::int64_t start_ns, std::int64_t end_ns,
                std::int64_t call) {
  return {.name = "x",
          .category = category,
          .start_ns = start_ns,
          .duration_ns = end_ns - start_ns,
          .args = {{"correlation", call}}};
}

TEST(TraceSummary, is_one_at_a_time_where_one_follows_the_other) {
  const auto summary =
      trace_summary({work("copy", 0, 10, 1), work("kernel", 10, 30, 2), work("copy", 40, 50, 3)});
  EXPECT_EQ(summary.at("at_a_time"), 1);
  EXPECT_EQ(summary.at("launch_calls"), 3);
  EXPECT_EQ(summary.at("activities"), 3);
}

TEST(TraceSummary, counts_copies_beside_kernels) {
  const auto summary = trace_summary({work("copy", 0, 20, 1), work("kernel", 10, 30, 2)});
  EXPECT_EQ(summary.at("at_a_time"), 40.0 / 30);
}

TEST(TraceSummary, counts_kernels_beside_one_another_on_one_stream) {
  const auto summary = trace_summary({work("kernel", 0, 10, 1), work("kernel", 5, 15, 2)});
  EXPECT_EQ(summary.at("at_a_time"), 20.0 / 15);
}

TEST(TraceSummary, takes_a_graph_for_one_call) {
  const auto summary =
      trace_summary({work("kernel", 0, 10, 7), work("kernel", 10, 20, 7), work("set", 20, 25, 7)});
  EXPECT_EQ(summary.at("launch_calls"), 1);
  EXPECT_EQ(summary.at("activities"), 3);
}

TEST(TraceSummary, leaves_out_the_host_and_what_took_no_time) {
  TraceEvent moment = work("kernel", 5, 5, 4);
  moment.duration_ns.reset();
  const auto summary = trace_summary(
      {work("host", 0, 100, 1), work("nvtx", 0, 100, 2), moment, work("kernel", 10, 20, 3)});
  EXPECT_EQ(summary.at("at_a_time"), 1);
  EXPECT_EQ(summary.at("activities"), 1);
  EXPECT_THAT(trace_summary({work("host", 0, 100, 1)}), IsEmpty());
  EXPECT_THAT(trace_summary({}), IsEmpty());
}

}  // namespace
}  // namespace gauntlet::lab::inline profile
