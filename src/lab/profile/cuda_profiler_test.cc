// Metric names against CUPTI's own tables for GH100: needs the toolkit, but neither a GPU nor a
// driver.
#include <gtest/gtest.h>

#include "lab/profile/cuda_cupti.h"
#include "lab/profile/profiler.h"

namespace gauntlet::lab::inline profile {
namespace {

using Names = std::vector<std::string>;

TEST(UnknownGpuMetrics, are_none_of_any_level_on_gh100) {
  for (const auto level :
       {ProfileLevel::minimal, ProfileLevel::roofline, ProfileLevel::deep_dive}) {
    const auto unknown = unknown_gpu_metrics("GH100", profile_metrics(level, BackendKind::cuda));
    ASSERT_TRUE(unknown) << unknown.error().message;
    EXPECT_EQ(*unknown, Names{}) << name_of(level);
  }
}

TEST(UnknownGpuMetrics, are_the_made_up_ones_wherever_they_stand) {
  const auto unknown = unknown_gpu_metrics(
      "GH100", {"sm__patience.sum", "dram__bytes_read.sum", "dram__bytes_read.median",
                "launch__registers_per_thread", "smsp__inst_executed.sum"});
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_EQ(*unknown,
            (Names{"sm__patience.sum", "dram__bytes_read.median", "launch__registers_per_thread"}));
}

TEST(UnknownGpuMetrics, include_a_counter_without_the_way_to_sum_it_up) {
  const auto unknown = unknown_gpu_metrics("GH100", {"dram__bytes_read"});
  ASSERT_TRUE(unknown) << unknown.error().message;
  EXPECT_EQ(*unknown, Names{"dram__bytes_read"});
}

TEST(UnknownGpuMetrics, is_an_error_for_a_chip_that_does_not_exist) {
  const auto unknown = unknown_gpu_metrics("GH999", {"dram__bytes_read.sum"});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("GH999"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("cuptiProfilerHostInitialize failed: CUPTI_ERROR"),
            std::string::npos)
      << unknown.error().message;
}

TEST(MetricPlanner, schedules_every_level_in_few_passes) {
  const auto cupti = Cupti::open();
  ASSERT_TRUE(cupti) << cupti.error().message;
  for (const auto& [level, most_passes] :
       {std::pair{ProfileLevel::minimal, 4}, std::pair{ProfileLevel::roofline, 20},
        std::pair{ProfileLevel::deep_dive, 30}}) {
    const auto names = profile_metrics(level, BackendKind::cuda);
    std::vector<const char*> metrics;
    for (const auto& name : names) metrics.push_back(name.c_str());
    MetricPlanner planner(**cupti, "GH100", {});
    ASSERT_TRUE(planner.add(metrics));
    auto image = planner.config_image();
    const auto passes = planner.num_passes(image);
    EXPECT_GE(passes, 1u);
    EXPECT_LE(passes, static_cast<std::size_t>(most_passes)) << name_of(level);
  }
}

TEST(CudaProfiler, says_why_when_there_is_no_gpu) {
  if (no_gpu_reason().empty()) GTEST_SKIP() << "there is a GPU";
  const auto profiler = make_profiler(BackendKind::cuda);
  ASSERT_FALSE(profiler);
  EXPECT_EQ(profiler.error().message, "GPU counters need a GPU: " + no_gpu_reason());
  EXPECT_EQ(profiler.error().kind, ErrorKind::environment);
}

TEST(TraceGpu, says_why_and_runs_nothing_when_there_is_no_gpu) {
  if (no_gpu_reason().empty()) GTEST_SKIP() << "there is a GPU";
  bool ran = false;
  const auto trace = trace_gpu([&] { ran = true; });
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().message, "a GPU trace needs a GPU: " + no_gpu_reason());
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace gauntlet::lab::inline profile
