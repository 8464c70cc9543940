#include "engine/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const GpuTraits kHopper{.name = "Hopper", .num_sms = 132, .has_bulk_copies = true};

CudaPlan plan_of(const EngineOptions& options, const GpuTraits& gpu = kHopper) {
  return resolve(options, gpu).value();
}

std::vector<std::string> lines_of(const CudaPlan& plan) { return Plan{.cuda = plan}.describe(); }

TEST(CudaPlan, everything_is_on_and_nothing_forced_by_default) {
  const CudaPlan plan = plan_of({});
  EXPECT_THAT(plan.companions, IsEmpty());
  EXPECT_EQ(plan.kv, KvType::bf16);
  const auto lines = lines_of(plan);
  EXPECT_THAT(lines, Contains("dense: bf16 x bf16, tensor cores, weights in fragment order, bulk "
                              "copies from 17 tokens on"));
  EXPECT_THAT(lines, Contains("layers: fused"));
  EXPECT_THAT(lines, Contains("kv: bf16, paged"));
  EXPECT_THAT(lines, Contains("launches: graphs, overlapping"));
  EXPECT_THAT(lines, Contains("host memory: pinned"));
}

TEST(CudaPlan, cuda_cores_force_rows_and_what_rows_force) {
  const CudaPlan plan = plan_of({.cuda = {.products = ProductUnit::cuda_cores}});
  EXPECT_EQ(plan.variants.weight_layout, WeightLayout::rows);
  EXPECT_EQ(plan.variants.pipelines, Pipelines::plain);
  EXPECT_EQ(plan.fusion, Fusion::op_by_op);
  EXPECT_THAT(plan.companions, ElementsAre(HasSubstr("row by row"), HasSubstr("op by op"),
                                           HasSubstr("plain loads")));
  const auto lines = lines_of(plan);
  EXPECT_THAT(lines,
              Contains("experts: mxfp4 x bf16, CUDA cores, weights row by row, plain loads"));
  EXPECT_THAT(lines, Contains(HasSubstr("forced: op by op, because")));
}

TEST(CudaPlan, what_was_asked_for_is_not_called_forced) {
  const CudaPlan plan = plan_of({.fusion = Fusion::op_by_op,
                                 .cuda = {.products = ProductUnit::cuda_cores,
                                          .weight_layout = WeightLayout::rows,
                                          .pipelines = Pipelines::plain}});
  EXPECT_THAT(plan.companions, IsEmpty());
}

TEST(CudaPlan, op_by_op_keeps_the_order_of_tensor_cores) {
  const CudaPlan plan = plan_of({.fusion = Fusion::op_by_op});
  EXPECT_EQ(plan.variants.weight_layout, WeightLayout::fragments);
  EXPECT_EQ(plan.variants.pipelines, Pipelines::bulk);
  EXPECT_THAT(plan.companions, IsEmpty());
  EXPECT_THAT(lines_of(plan), Contains("layers: op by op"));
}

TEST(CudaPlan, a_gpu_without_bulk_copies_forces_plain_loads) {
  const CudaPlan plan = plan_of({}, {.name = "Ampere", .num_sms = 108});
  EXPECT_EQ(plan.variants.pipelines, Pipelines::plain);
  EXPECT_THAT(plan.companions, ElementsAre(HasSubstr("Hopper")));
}

TEST(CudaPlan, contiguous_kv_says_what_it_reserves_and_what_it_forces) {
  CudaPlan plan = plan_of({.cuda = {.kv_layout = KvLayout::contiguous}});
  plan.reserved_positions = 4096;
  EXPECT_THAT(plan.companions, ElementsAre(HasSubstr("no prefix cache")));
  EXPECT_THAT(lines_of(plan), Contains(HasSubstr("contiguous: 4096 positions")));
}

TEST(CudaPlan, every_other_switch_stands_alone) {
  const EngineOptions switches[] = {
      {.attention = AttentionKind::naive},
      {.experts = ExpertWeightsKind::dequantised},
      {.kv = KvType::fp8},
      {.cuda = {.pipelines = Pipelines::plain}},
      {.cuda = {.graphs = Graphs::off}},
      {.cuda = {.dependent_launch = DependentLaunch::off}},
      {.cuda = {.host_memory = HostMemory::pageable}},
      {.cuda = {.determinism = Determinism::per_request}},
  };
  std::vector<std::vector<std::string>> seen = {lines_of(plan_of({}))};
  for (const EngineOptions& options : switches) {
    const CudaPlan plan = plan_of(options);
    EXPECT_THAT(plan.companions, IsEmpty());
    EXPECT_THAT(seen, testing::Not(Contains(lines_of(plan)))) << "a switch that no line shows";
    seen.push_back(lines_of(plan));
  }
}

TEST(CudaPlan, f32_keys_and_values_are_refused) {
  const auto plan = resolve({.kv = KvType::f32}, kHopper);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, ErrorKind::wrong_use);
}

}  // namespace
}  // namespace gauntlet::engine
