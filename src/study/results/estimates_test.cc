// Do gains come out of the blocks of all workloads that count?
#include "study/results/estimates.h"

#include <gtest/gtest.h>

namespace gauntlet::study {
namespace {

/// Two rounds in which side b takes `b` where side a takes `a`.
stats::ProcessBlocks rounds(double a, double b) {
  return stats::ProcessBlocks(2, {.ns = {{a, a}, {b, b}}});
}

TEST(Estimates, put_the_gains_of_all_workloads_into_a_geometric_mean) {
  const ServeDuel duel{.metrics = {{.name = "x", .blocks = rounds(400, 100)},
                                   {.name = "y", .blocks = rounds(100, 100)}}};
  const Gain gain = gain_of(duel);
  EXPECT_NEAR(gain.all.ratio.value, 2, 1e-9);
  EXPECT_EQ(gain.workloads[0].gain.label, stats::Gain::gain);
  EXPECT_EQ(gain.workloads[1].gain.label, stats::Gain::no_gain);
}

TEST(Estimates, keep_what_stands_beside_out_of_the_mean) {
  const ServeDuel duel{.metrics = {{.name = "x", .blocks = rounds(400, 100)},
                                   {.name = "y", .beside = true, .blocks = rounds(100, 900)}}};
  const Gain gain = gain_of(duel);
  EXPECT_NEAR(gain.all.ratio.value, 4, 1e-9);
  EXPECT_TRUE(gain.workloads[1].beside);
  EXPECT_EQ(gain.workloads[1].gain.label, stats::Gain::loss);
}

TEST(Estimates, give_the_time_of_a_step_and_of_a_whole_prompt) {
  Bout bout{.workload = {.name = "decode_8", .test = {.batch = 8, .tokens = 4}},
            .blocks = rounds(8e6, 4e6),
            .limits = {engine::SpeedLimit{}, {.seconds = 1e-3, .bound_by = "memory"}}};
  const Figure before = figure_of(bout, SideOf::a), after = figure_of(bout, SideOf::b);
  EXPECT_DOUBLE_EQ(before.ms.value, 2);
  EXPECT_DOUBLE_EQ(before.tok_s.value, 4000);
  EXPECT_FALSE(before.percent_of_limit) << "without ceilings";
  EXPECT_DOUBLE_EQ(after.percent_of_limit.value(), 25);
  EXPECT_EQ(after.repetitions, 4);
  bout.workload.name = "prompt";
  EXPECT_DOUBLE_EQ(figure_of(bout, SideOf::a).ms.value, 8);
}

}  // namespace
}  // namespace gauntlet::study
