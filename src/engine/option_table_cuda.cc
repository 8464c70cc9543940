// The options that only a GPU has.
#include <fmt/format.h>

#include "engine/option_parts.h"
#include "engine/option_table.h"

namespace gauntlet::engine {
namespace {

using Part = PlanPart<CudaPlan>;

/// Both kinds of products say so.
std::vector<Part> of_products(const std::function<std::string(const CudaPlan&)>& text) {
  return {{.line = "dense", .text = text}, {.line = "experts", .text = text}};
}

OptionEntry products() {
  return {
      .flag = cuda_flag<ProductUnit>(
          "--products", &CudaOptions::products,
          {{"tensor-cores", ProductUnit::tensor_cores}, {"cuda-cores", ProductUnit::cuda_cores}},
          "GPU: what multiplies; cuda-cores takes --weight-layout rows (default: tensor-cores)"),
      .cuda = {
          .resolve = [](const EngineOptions&, const GpuTraits&, CudaPlan& plan) -> Expected<void> {
            if (plan.variants.products == ProductUnit::cuda_cores) {
              force(plan, plan.variants.weight_layout, WeightLayout::rows,
                    "weights row by row, because CUDA cores have no use for the order of tensor "
                    "cores");
            }
            return {};
          },
          .parts = of_products([](const CudaPlan& plan) {
            return plan.variants.products == ProductUnit::tensor_cores ? "tensor cores"
                                                                       : "CUDA cores";
          }),
          .row = LadderRow{.id = "tensor_cores",
                           .title = "products on tensor cores",
                           .layer = 1,
                           .targets = {"ch01:tf32_matmul"},
                           .off = set(&CudaOptions::products, ProductUnit::cuda_cores),
                           .on = set(&CudaOptions::products, ProductUnit::tensor_cores)}}};
}

OptionEntry weight_layout() {
  return {
      .flag = cuda_flag<WeightLayout>(
          "--weight-layout", &CudaOptions::weight_layout,
          {{"fragments", WeightLayout::fragments}, {"rows", WeightLayout::rows}},
          "GPU: weights shuffled for wide loads, or row by row, which takes --fusion op-by-op and "
          "--pipelines plain (default: fragments)"),
      .cuda = {
          .resolve = [](const EngineOptions&, const GpuTraits&, CudaPlan& plan) -> Expected<void> {
            if (plan.variants.weight_layout == WeightLayout::rows) {
              force(plan, plan.fusion, Fusion::op_by_op,
                    "op by op, because products of row-major weights add a bias and do no more");
              force(plan, plan.variants.pipelines, Pipelines::plain,
                    "plain loads, because bulk copies are of weights in fragment order");
            }
            return {};
          },
          .parts = of_products([](const CudaPlan& plan) {
            return plan.variants.weight_layout == WeightLayout::fragments
                       ? "weights in fragment order"
                       : "weights row by row";
          }),
          .row = LadderRow{.id = "weight_layout",
                           .title = "weights in the order in which tensor cores take them",
                           .layer = 2,
                           .targets = {"ch07:coalesced_copy", "ch07:vectorized_copy"},
                           .off = set(&CudaOptions::weight_layout, WeightLayout::rows),
                           .on = set(&CudaOptions::weight_layout, WeightLayout::fragments)}}};
}

OptionEntry pipelines() {
  const auto part = [](const char* line, const char* when_bulk) {
    return Part{.line = line, .text = [=](const CudaPlan& plan) {
                  return plan.variants.pipelines == Pipelines::bulk ? when_bulk : "plain loads";
                }};
  };
  return {.flag = cuda_flag<Pipelines>(
              "--pipelines", &CudaOptions::pipelines,
              {{"bulk", Pipelines::bulk}, {"plain", Pipelines::plain}},
              "GPU: weights of many tokens by bulk copies, or by plain loads (default: bulk)"),
          .cuda = {.resolve = [](const EngineOptions&, const GpuTraits& gpu,
                                 CudaPlan& plan) -> Expected<void> {
                     if (!gpu.has_bulk_copies) {
                       force(plan, plan.variants.pipelines, Pipelines::plain,
                             "plain loads, because the kernels of bulk copies are for Hopper");
                     }
                     return {};
                   },
                   .parts = {part("dense", "bulk copies from 17 tokens on"),
                             part("experts", "bulk copies")},
                   .row = LadderRow{
                       .id = "bulk_pipelines",
                       .title = "weights of many tokens by bulk copies from a warp of their own",
                       .layer = 3,
                       .place = 2,
                       .targets = {"ch07:tma_copy", "ch07:tma_tile_2d", "ch07:async_prefetch"},
                       .off = set(&CudaOptions::pipelines, Pipelines::plain),
                       .on = set(&CudaOptions::pipelines, Pipelines::bulk)}}};
}

std::string kv_layout_text(const CudaPlan& plan) {
  if (plan.variants.kv_layout == KvLayout::paged) return "paged";
  return fmt::format(
      "contiguous: {} positions reserved for each sequence, in every layer, and read through a "
      "table of one run",
      plan.reserved_positions);
}

OptionEntry kv_layout() {
  return {.flag = cuda_flag<KvLayout>(
              "--kv-layout", &CudaOptions::kv_layout,
              {{"paged", KvLayout::paged}, {"contiguous", KvLayout::contiguous}},
              "GPU: pages as sequences grow, or each one's greatest length reserved "
              "(default: paged)"),
          .cuda = {.resolve = [](const EngineOptions&, const GpuTraits&,
                                 CudaPlan& plan) -> Expected<void> {
                     if (plan.variants.kv_layout == KvLayout::contiguous) {
                       plan.companions.push_back(
                           "no prefix cache, because contiguous sequences share no pages");
                     }
                     return {};
                   },
                   .parts = {{.line = "kv", .text = kv_layout_text}},
                   .row = LadderRow{.id = "paged_kv",
                                    .title = "pages handed out as sequences grow",
                                    .layer = 6,
                                    .seen_by = SeenBy::requests,
                                    .targets = {},
                                    .off = set(&CudaOptions::kv_layout, KvLayout::contiguous),
                                    .on = set(&CudaOptions::kv_layout, KvLayout::paged)}}};
}

OptionEntry host_memory() {
  return {.flag = cuda_flag<HostMemory>(
              "--host-memory", &CudaOptions::host_memory,
              {{"pinned", HostMemory::pinned}, {"pageable", HostMemory::pageable}},
              "GPU: memory of a step's inputs and tokens (default: pinned)"),
          .cuda = {.parts = {{.line = "host memory",
                              .text =
                                  [](const CudaPlan& plan) {
                                    return plan.variants.host_memory == HostMemory::pinned
                                               ? "pinned"
                                               : "pageable";
                                  }}},
                   .row = LadderRow{.id = "pinned_memory",
                                    .title = "a step's inputs and tokens in pinned memory",
                                    .layer = 1,
                                    .targets = {"ch06:managed_prefetch"},
                                    .off = set(&CudaOptions::host_memory, HostMemory::pageable),
                                    .on = set(&CudaOptions::host_memory, HostMemory::pinned)}}};
}

OptionEntry graphs() {
  return {.flag = cuda_flag<Graphs>("--graphs", &CudaOptions::graphs,
                                    {{"on", Graphs::on}, {"off", Graphs::off}},
                                    "GPU: decode steps captured once and replayed (default: on)"),
          .cuda = {.parts = {{.line = "launches",
                              .text =
                                  [](const CudaPlan& plan) {
                                    return plan.variants.graphs == Graphs::on ? "graphs"
                                                                              : "one by one";
                                  }}},
                   .row = LadderRow{.id = "graphs",
                                    .title = "decode steps captured once and replayed",
                                    .layer = 4,
                                    .targets = {"ch01:sync_every_call"},
                                    .off = set(&CudaOptions::graphs, Graphs::off),
                                    .on = set(&CudaOptions::graphs, Graphs::on)}}};
}

OptionEntry dependent_launch() {
  return {
      .flag = cuda_flag<DependentLaunch>(
          "--dependent-launch", &CudaOptions::dependent_launch,
          {{"on", DependentLaunch::on}, {"off", DependentLaunch::off}},
          "GPU: kernels start while the one in front ends (default: on)"),
      .cuda = {.parts = {{.line = "launches",
                          .text =
                              [](const CudaPlan& plan) {
                                return plan.variants.dependent_launch == DependentLaunch::on
                                           ? "overlapping"
                                           : "";
                              }}},
               .row = LadderRow{.id = "dependent_launch",
                                .title = "kernels start while the one in front ends",
                                .layer = 4,
                                .targets = {},
                                .off = set(&CudaOptions::dependent_launch, DependentLaunch::off),
                                .on = set(&CudaOptions::dependent_launch, DependentLaunch::on)}}};
}

OptionEntry determinism() {
  OptionEntry entry{
      .flag = {.name = "--deterministic",
               .help = "GPU: a request's logits do not depend on its batch mates",
               .group = FlagGroup::cuda,
               .words = {{"", set(&CudaOptions::determinism, Determinism::per_request)}},
               .value =
                   [](const EngineOptions& options) {
                     return options.cuda.determinism == Determinism::per_request ? "per-request"
                                                                                 : "";
                   }},
      .cuda = {.parts = {{.line = "determinism", .text = [](const CudaPlan& plan) {
                            return plan.variants.determinism == Determinism::per_request
                                       ? "per request"
                                       : "per batch (sums may differ with batch mates)";
                          }}}}};
  return entry;
}

}  // namespace

OptionTable cuda_options() {
  return {products(),    weight_layout(), pipelines(),        kv_layout(),
          host_memory(), graphs(),        dependent_launch(), determinism()};
}

}  // namespace gauntlet::engine
