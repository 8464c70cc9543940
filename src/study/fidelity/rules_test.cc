// Do the rules say what a careful reader of the same figures would say?
#include "study/fidelity/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::study::inline fidelity {
namespace {

using testing::HasSubstr;

TEST(SignChecks, agree_when_both_gain) {
  const auto sign =
      check_sign({.option = "simd", .worth = {2, 1.9, 2.1}, .layer = 2, .layer_gain = {5, 4, 6}});
  EXPECT_EQ(sign.sign, Sign::same);
  EXPECT_THAT(sign.sentence, HasSubstr("gain in company too: 2.00× [1.90, 2.10]"));
}

TEST(SignChecks, blame_the_options_that_came_along) {
  const auto sign = check_sign({.option = "flash",
                                .worth = {0.9, 0.85, 0.95},
                                .layer = 3,
                                .layer_gain = {1.5, 1.4, 1.6},
                                .others = {"fused"}});
  EXPECT_EQ(sign.sign, Sign::opposite);
  EXPECT_THAT(sign.sentence, HasSubstr("layer 3 also brought fused"));
}

TEST(SignChecks, show_the_plan_without_the_option) {
  const auto sign = check_sign({.option = "mxfp4",
                                .worth = {1, 0.9, 1.1},
                                .layer = 5,
                                .layer_gain = {1.5, 1.4, 1.6},
                                .plan_without = {"experts: bf16 x bf16"}});
  EXPECT_EQ(sign.sign, Sign::undecided);
  EXPECT_THAT(sign.sentence, HasSubstr("one of the two intervals holds 1"));
  EXPECT_THAT(sign.sentence, HasSubstr("without it the plan reads experts: bf16 x bf16"));
}

TEST(SignChecks, say_when_later_layers_turned_a_gain_into_a_loss) {
  const auto sign = check_sign(
      {.option = "x", .worth = {0.5, 0.4, 0.6}, .layer = 1, .layer_gain = {1.5, 1.4, 1.6}});
  EXPECT_THAT(sign.sentence, HasSubstr("what came after it changed its worth"));
}

std::vector<StepPart> parts() {
  return {{.name = "attention", .us = 30, .floor_us = 10, .bound_by = "memory"},
          {.name = "experts", .us = 60, .floor_us = 20, .bound_by = "memory"},
          {.name = "head", .us = 10, .floor_us = 9, .bound_by = "compute"}};
}

TEST(Diagnoses, name_the_host_before_anything_else) {
  const auto found = diagnose(parts(), 100, 100);
  EXPECT_EQ(found.bottleneck, Bottleneck::host);
  EXPECT_THAT(found.sentence, HasSubstr("33% of a step"));
}

TEST(Diagnoses, name_launches_when_a_quarter_passes_between_kernels) {
  EXPECT_EQ(diagnose(parts(), 40, 0).bottleneck, Bottleneck::launch);
  EXPECT_EQ(diagnose(parts(), 30, 0).bottleneck, Bottleneck::memory);
}

TEST(Diagnoses, weigh_memory_against_compute_by_the_least_time_of_each) {
  const auto found = diagnose(parts(), 0, 1);
  EXPECT_EQ(found.bottleneck, Bottleneck::memory);
  EXPECT_EQ(found.part, "experts");
  EXPECT_THAT(found.sentence, HasSubstr("experts holds the most to gain, 40 µs above"));
  auto heavy = parts();
  heavy[2].floor_us = 500;
  heavy[2].us = 600;
  EXPECT_EQ(diagnose(heavy, 0, 0).bottleneck, Bottleneck::compute);
}

TEST(Diagnoses, go_without_ceilings) {
  const auto found = diagnose({{.name = "experts", .us = 60}, {.name = "head", .us = 5}}, 0, 0);
  EXPECT_EQ(found.part, "experts");
  EXPECT_THAT(found.sentence, HasSubstr("its limit is unknown"));
}

}  // namespace
}  // namespace gauntlet::study::inline fidelity
