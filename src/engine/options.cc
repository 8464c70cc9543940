#include "engine/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/os/threads.h"
#include "core/text/text.h"

namespace gauntlet::engine {
namespace {

using kernels::cpu::Precision;
using kernels::cpu::SimdLevel;

constexpr int kMostThreads = 1024;

std::string_view name_of(Precision precision) {
  return precision == Precision::f32 ? "f32" : precision == Precision::bf16 ? "bf16" : "int8";
}

Expected<SimdLevel> choose_level(const EngineOptions& options) {
  const auto levels = kernels::cpu::available_levels();
  if (!options.simd) return levels.back();
  if (std::find(levels.begin(), levels.end(), *options.simd) == levels.end()) {
    return Error{fmt::format("this machine has no {}; its best SIMD level is {}",
                             kernels::cpu::name_of(*options.simd),
                             kernels::cpu::name_of(levels.back()))};
  }
  return *options.simd;
}

}  // namespace

Expected<Plan> resolve(const EngineOptions& options) {
  if (options.threads < 0 || options.threads > kMostThreads) {
    return Error{fmt::format("{} threads: give 1 to {}, or 0 for one per CPU", options.threads,
                             kMostThreads),
                 ErrorKind::wrong_use};
  }
  const auto level = choose_level(options);
  if (!level) return level.error();
  Plan plan{.simd = *level,
            .fusion = options.fusion,
            .stages = options.fusion == Fusion::fused ? options.stages : Stages::apart,
            .attention = options.attention,
            .expert_weights = options.experts};
  if (options.kv == KvType::fp8) {
    return Error{"the CPU engine keeps keys and values in f32 or bf16, not fp8",
                 ErrorKind::wrong_use};
  }
  const std::vector<int> allowed = allowed_cpus();
  const int threads = options.threads == 0 ? static_cast<int>(allowed.size()) : options.threads;
  for (int i = 0; i < threads; ++i) plan.cpus.push_back(allowed[i % allowed.size()]);
  // Rounded activations are faster wherever there are wide integer products; the portable level
  // emulates them and is slower.
  const bool rounded =
      options.activations == Activations::int8 ||
      (options.activations == Activations::automatic && *level != SimdLevel::portable);
  // Many sequences wait for the memory of their keys and values: who asks for speed gets half the
  // bytes.
  const bool wants_speed = rounded && options.activations == Activations::automatic;
  plan.kv = options.kv.value_or(wants_speed ? KvType::bf16 : KvType::f32);
  // The byte products need VNNI to keep up with the memory.
  if (*level >= SimdLevel::avx512) plan.head = options.head;
  if (rounded) {
    plan.dense = *level >= SimdLevel::avx512_bf16 ? Precision::bf16 : Precision::f32;
    plan.experts = options.experts == ExpertWeightsKind::mxfp4 ? Precision::int8 : plan.dense;
  }
  return plan;
}

std::string_view name_of(Activations activations) {
  return activations == Activations::f32    ? "f32"
         : activations == Activations::int8 ? "int8"
                                            : "auto";
}

std::string_view name_of(KvType type) {
  return type == KvType::f32 ? "f32" : type == KvType::bf16 ? "bf16" : "fp8";
}

std::string CudaMemory::describe() const {
  const auto text = [](std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
  return fmt::format("{} weights, {} workspace, {} KV of {} free", text(weight_bytes),
                     text(workspace_bytes), text(kv_bytes), text(free_bytes));
}

std::string Plan::activations() const {
  if (cuda) return "bf16";
  return std::string(name_of(experts == Precision::f32 ? dense : experts));
}

namespace {

std::string_view name_of(Fusion fusion) { return fusion == Fusion::fused ? "fused" : "op by op"; }

/// How the products of dense weights, or of experts, are computed.
std::string describe_products(const CudaOptions& variants, std::string_view when_bulk) {
  return fmt::format("{}, {}, {}",
                     variants.products == ProductUnit::tensor_cores ? "tensor cores" : "CUDA cores",
                     variants.weight_layout == WeightLayout::fragments ? "weights in fragment order"
                                                                       : "weights row by row",
                     variants.pipelines == Pipelines::bulk ? when_bulk : "plain loads");
}

std::vector<std::string> describe_cuda(const CudaPlan& plan) {
  const CudaOptions& variants = plan.variants;
  std::vector<std::string> lines = {
      fmt::format("device: {}, {} SMs", plan.device, plan.num_sms),
      "dense: bf16 x bf16, " + describe_products(variants, "bulk copies from 17 tokens on"),
      fmt::format("experts: {} x bf16, {}",
                  plan.expert_weights == ExpertWeightsKind::mxfp4 ? "mxfp4" : "bf16",
                  describe_products(variants, "bulk copies")),
      fmt::format("attention: {}", plan.attention == AttentionKind::flash ? "flash" : "naive"),
      fmt::format("layers: {}", name_of(plan.fusion)),
      fmt::format("kv: {}, {}", name_of(plan.kv),
                  variants.kv_layout == KvLayout::paged
                      ? "paged"
                      : fmt::format("contiguous: {} positions reserved for each sequence, in "
                                    "every layer, and read through a table of one run",
                                    plan.reserved_positions)),
      fmt::format("launches: {}{}", variants.graphs == Graphs::on ? "graphs" : "one by one",
                  variants.dependent_launch == DependentLaunch::on ? ", overlapping" : ""),
      fmt::format("host memory: {}",
                  variants.host_memory == HostMemory::pinned ? "pinned" : "pageable"),
      fmt::format("determinism: {}", variants.determinism == Determinism::per_request
                                         ? "per request"
                                         : "per batch (sums may differ with batch mates)"),
      "memory: " + plan.memory.describe(),
  };
  for (const std::string& companion : plan.companions) lines.push_back("forced: " + companion);
  return lines;
}

}  // namespace

Expected<CudaPlan> resolve(const EngineOptions& options, const GpuTraits& gpu) {
  if (options.kv == KvType::f32) {
    return Error{"the CUDA engine keeps keys and values in bf16 or fp8, not f32",
                 ErrorKind::wrong_use};
  }
  CudaPlan plan{.device = gpu.name,
                .num_sms = gpu.num_sms,
                .expert_weights = options.experts,
                .attention = options.attention,
                .fusion = options.fusion,
                .kv = options.kv.value_or(KvType::bf16),
                .variants = options.cuda};
  CudaOptions& variants = plan.variants;
  const auto force = [&](auto& variant, auto forced, const char* line) {
    if (variant == forced) return;
    variant = forced;
    plan.companions.push_back(line);
  };
  if (variants.products == ProductUnit::cuda_cores) {
    force(variants.weight_layout, WeightLayout::rows,
          "weights row by row, because CUDA cores have no use for the order of tensor cores");
  }
  if (variants.weight_layout == WeightLayout::rows) {
    force(plan.fusion, Fusion::op_by_op,
          "op by op, because products of row-major weights add a bias and do no more");
    force(variants.pipelines, Pipelines::plain,
          "plain loads, because bulk copies are of weights in fragment order");
  }
  if (!gpu.has_bulk_copies) {
    force(variants.pipelines, Pipelines::plain,
          "plain loads, because the kernels of bulk copies are for Hopper");
  }
  if (variants.kv_layout == KvLayout::contiguous) {
    plan.companions.push_back("no prefix cache, because contiguous sequences share no pages");
  }
  return plan;
}

namespace {

std::string describe_head(const Plan& plan) {
  if (plan.head == HeadKind::full) return "full";
  return fmt::format("screened by bytes for 1 to {} greedy tokens, {} more memory", kScreenedRows,
                     format_bytes(static_cast<double>(plan.screen_bytes)));
}

}  // namespace

std::vector<std::string> Plan::describe() const {
  if (cuda) return describe_cuda(*cuda);
  const auto simd_name = kernels::cpu::name_of(simd);
  return {
      fmt::format("threads: {}, pinned", cpus.size()),
      fmt::format("dense: bf16 x {}, {}", name_of(dense), simd_name),
      fmt::format("experts: {} x {}, {}",
                  expert_weights == ExpertWeightsKind::mxfp4 ? "mxfp4" : "bf16", name_of(experts),
                  simd_name),
      fmt::format("attention: {}, {}", attention == AttentionKind::flash ? "flash" : "naive",
                  simd_name),
      fmt::format("layers: {}, {}", name_of(fusion),
                  stages == Stages::overlapped ? "stages of few tokens overlap"
                                               : "a barrier after each stage"),
      fmt::format("head: {}", describe_head(*this)),
      fmt::format("kv: {}, paged", name_of(kv)),
  };
}

}  // namespace gauntlet::engine
