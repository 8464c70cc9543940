// The options that CPUs have, and those that both backends have.
#include <fmt/format.h>

#include <algorithm>

#include "core/os/threads.h"
#include "core/text/text.h"
#include "engine/option_parts.h"
#include "engine/option_table.h"

namespace gauntlet::engine {
namespace {

using kernels::cpu::Precision;
using kernels::cpu::SimdLevel;

constexpr int kMostThreads = 1024;

OptionEntry threads() {
  return {.flag = {.name = "--threads",
                   .help = "pinned, 1 to 1024 (default: one per CPU)",
                   .number = OptionNumber{.least = 1,
                                          .most = kMostThreads,
                                          .set = [](EngineOptions& o, int n) { o.threads = n; }},
                   .value = [](const EngineOptions& o) { return std::to_string(o.threads); }},
          .cpu = {.resolve = [](const EngineOptions& options, Plan& plan) -> Expected<void> {
                    if (options.threads < 0 || options.threads > kMostThreads) {
                      return Error{fmt::format("{} threads: give 1 to {}, or 0 for one per CPU",
                                               options.threads, kMostThreads),
                                   ErrorKind::wrong_use};
                    }
                    const std::vector<int> allowed = allowed_cpus();
                    const int threads =
                        options.threads == 0 ? static_cast<int>(allowed.size()) : options.threads;
                    for (int i = 0; i < threads; ++i)
                      plan.cpus.push_back(allowed[i % allowed.size()]);
                    return {};
                  },
                  .parts = {{.line = "threads",
                             .text =
                                 [](const Plan& plan) {
                                   return fmt::format("{}, pinned", plan.cpus.size());
                                 }}},
                  .row = LadderRow{.id = "threads",
                                   .title = "one pinned thread per CPU",
                                   .layer = 1,
                                   .targets = {"ch06:parallel_add"},
                                   .off = set(&EngineOptions::threads, 1),
                                   .on = set(&EngineOptions::threads, 0)}}};
}

Expected<void> choose_level(const EngineOptions& options, Plan& plan) {
  const auto levels = kernels::cpu::available_levels();
  plan.simd = options.simd.value_or(levels.back());
  if (std::ranges::find(levels, plan.simd) != levels.end()) return {};
  return Error{fmt::format("this machine has no {}; its best SIMD level is {}",
                           kernels::cpu::name_of(plan.simd), kernels::cpu::name_of(levels.back()))};
}

OptionEntry simd() {
  using Level = std::optional<SimdLevel>;
  std::vector<std::pair<std::string, Level>> words;
  for (const SimdLevel level : kernels::cpu::kSimdLevels) {
    words.emplace_back(kernels::cpu::name_of(level), level);
  }
  const auto behind = [](const char* line) {
    return PlanPart<Plan>{
        .line = line,
        .text = [](const Plan& plan) { return std::string(kernels::cpu::name_of(plan.simd)); },
        .place = PlanPart<Plan>::Place::behind};
  };
  return {.flag = word_flag("--simd", &EngineOptions::simd, words,
                            "instructions (default: the best here)"),
          .cpu = {.resolve = choose_level,
                  .parts = {behind("dense"), behind("experts"), behind("attention")},
                  .row = LadderRow{.id = "simd",
                                   .title = "the widest vector instructions here",
                                   .layer = 2,
                                   .targets = {"ch07:vectorized_copy", "ch08:loop_unrolling"},
                                   .off = set(&EngineOptions::simd, Level(SimdLevel::portable)),
                                   .on = set(&EngineOptions::simd, Level())}}};
}

/// Rounded activations are faster wherever there are wide integer products; the portable level
/// emulates them and is slower.
bool rounds(const EngineOptions& options, const Plan& plan) {
  return options.activations == Activations::int8 ||
         (options.activations == Activations::automatic && plan.simd != SimdLevel::portable);
}

OptionEntry activations() {
  std::vector<std::pair<std::string, Activations>> words;
  for (const Activations one : {Activations::f32, Activations::int8, Activations::automatic}) {
    words.emplace_back(name_of(one), one);
  }
  OptionEntry entry{
      .flag = word_flag("--activations", &EngineOptions::activations, words,
                        "exact, rounded per 32 values, or whichever is faster"),
      .cpu = {.resolve = [](const EngineOptions& options, Plan& plan) -> Expected<void> {
                if (rounds(options, plan) && plan.simd >= SimdLevel::avx512_bf16) {
                  plan.dense = Precision::bf16;
                }
                return {};
              },
              .parts = {{.line = "dense",
                         .text =
                             [](const Plan& plan) {
                               return fmt::format("bf16 x {}", name_of(plan.dense));
                             }}},
              .row = LadderRow{.id = "int8_activations",
                               .title = "activations rounded to 8 bits per 32 values",
                               .layer = 5,
                               .place = 1,
                               .perplexity_percent = 0.5,
                               .targets = {"ch01:tf32_matmul"},
                               .off = set(&EngineOptions::activations, Activations::f32),
                               .on = set(&EngineOptions::activations, Activations::automatic)}},
      .cuda = {
          .parts = {{.line = "dense", .text = [](const CudaPlan&) { return "bf16 x bf16"; }}}}};
  entry.flag.group = FlagGroup::apart;
  return entry;
}

Expected<void> choose_cpu_kv(const EngineOptions& options, Plan& plan) {
  if (options.kv == KvType::fp8) {
    return Error{"the CPU engine keeps keys and values in f32 or bf16, not fp8",
                 ErrorKind::wrong_use};
  }
  // Many sequences wait for the memory of their keys and values: who asks for speed gets half the
  // bytes.
  const bool wants_speed = rounds(options, plan) && options.activations == Activations::automatic;
  plan.kv = options.kv.value_or(wants_speed ? KvType::bf16 : KvType::f32);
  return {};
}

Expected<void> choose_cuda_kv(const EngineOptions& options, const GpuTraits&, CudaPlan& plan) {
  if (options.kv == KvType::f32) {
    return Error{"the CUDA engine keeps keys and values in bf16 or fp8, not f32",
                 ErrorKind::wrong_use};
  }
  plan.kv = options.kv.value_or(KvType::bf16);
  return {};
}

OptionEntry kv_dtype() {
  using Kv = std::optional<KvType>;
  return {
      .flag = word_flag<EngineOptions, Kv>(
          "--kv-dtype", &EngineOptions::kv,
          {{"f32", KvType::f32}, {"bf16", KvType::bf16}, {"fp8", KvType::fp8}},
          "keys and values in the cache: f32 or bf16 on CPUs, bf16 or fp8 on a GPU (default: "
          "the first; bf16 with --activations auto)"),
      .cpu = {.resolve = choose_cpu_kv,
              .parts = {{.line = "kv",
                         .text =
                             [](const Plan& plan) {
                               return fmt::format("{}, paged", name_of(plan.kv));
                             }}},
              .row = LadderRow{.id = "bf16_kv",
                               .title = "keys and values in 16 bits",
                               .layer = 5,
                               .place = 2,
                               .perplexity_percent = 0.5,
                               .targets = {},
                               .off = set(&EngineOptions::kv, Kv(KvType::f32)),
                               .on = set(&EngineOptions::kv, Kv(KvType::bf16))}},
      .cuda = {
          .resolve = choose_cuda_kv,
          .parts = {{.line = "kv",
                     .text = [](const CudaPlan& plan) { return std::string(name_of(plan.kv)); }}},
          .row = LadderRow{.id = "fp8_kv",
                           .title = "keys and values in 8 bits",
                           .layer = 5,
                           .place = 1,
                           .perplexity_percent = 2,
                           .targets = {},
                           .off = set(&EngineOptions::kv, Kv(KvType::bf16)),
                           .on = set(&EngineOptions::kv, Kv(KvType::fp8))}}};
}

OptionEntry attention() {
  const auto name = [](const auto& plan) {
    return plan.attention == AttentionKind::flash ? "flash" : "naive";
  };
  LadderRow row{.id = "flash_attention",
                .title = "attention in one blocked pass",
                .layer = 3,
                .targets = {"ch07:tiled_matmul"},
                .off = set(&EngineOptions::attention, AttentionKind::naive),
                .on = set(&EngineOptions::attention, AttentionKind::flash)};
  LadderRow on_gpu = row;
  on_gpu.place = 1;
  return {.flag = word_flag<EngineOptions, AttentionKind>(
              "--attention", &EngineOptions::attention,
              {{"flash", AttentionKind::flash}, {"naive", AttentionKind::naive}},
              "in one blocked pass, or score by score (default: flash)"),
          .cpu = {.resolve = [](const EngineOptions& options, Plan& plan) -> Expected<void> {
                    plan.attention = options.attention;
                    return {};
                  },
                  .parts = {{.line = "attention", .text = name}},
                  .row = row},
          .cuda = {.resolve = [](const EngineOptions& options, const GpuTraits&,
                                 CudaPlan& plan) -> Expected<void> {
                     plan.attention = options.attention;
                     return {};
                   },
                   .parts = {{.line = "attention", .text = name}},
                   .row = on_gpu}};
}

std::string_view stored_as(ExpertWeightsKind kind) {
  return kind == ExpertWeightsKind::mxfp4 ? "mxfp4" : "bf16";
}

OptionEntry experts() {
  const LadderRow row{.id = "mxfp4_experts",
                      .title = "4-bit experts multiplied as they are",
                      .layer = 5,
                      .targets = {},
                      .off = set(&EngineOptions::experts, ExpertWeightsKind::dequantised),
                      .on = set(&EngineOptions::experts, ExpertWeightsKind::mxfp4)};
  return {
      .flag = word_flag<EngineOptions, ExpertWeightsKind>(
          "--experts", &EngineOptions::experts,
          {{"mxfp4", ExpertWeightsKind::mxfp4}, {"dequantised", ExpertWeightsKind::dequantised}},
          "multiplied as they are, or expanded in memory first (default: mxfp4)"),
      .cpu = {.resolve = [](const EngineOptions& options, Plan& plan) -> Expected<void> {
                plan.expert_weights = options.experts;
                const bool packed = options.experts == ExpertWeightsKind::mxfp4;
                if (rounds(options, plan)) plan.experts = packed ? Precision::int8 : plan.dense;
                return {};
              },
              .parts = {{.line = "experts",
                         .text =
                             [](const Plan& plan) {
                               return fmt::format("{} x {}", stored_as(plan.expert_weights),
                                                  name_of(plan.experts));
                             }}},
              .row = row},
      .cuda = {.resolve = [](const EngineOptions& options, const GpuTraits&,
                             CudaPlan& plan) -> Expected<void> {
                 plan.expert_weights = options.experts;
                 return {};
               },
               .parts = {{.line = "experts",
                          .text =
                              [](const CudaPlan& plan) {
                                return fmt::format("{} x bf16", stored_as(plan.expert_weights));
                              }}},
               .row = row}};
}

std::string head_text(const Plan& plan) {
  if (plan.head == HeadKind::full) return "full";
  return fmt::format("screened by bytes for 1 to {} greedy tokens, {} more memory", kScreenedRows,
                     format_bytes(static_cast<double>(plan.screen_bytes)));
}

OptionEntry head() {
  return {.flag = word_flag<EngineOptions, HeadKind>(
              "--head", &EngineOptions::head,
              {{"screened", HeadKind::screened}, {"full", HeadKind::full}},
              "greedy tokens on CPUs: from the few exact logits that an 8-bit copy of "
              "the output head leaves in question, or from all (default: screened)"),
          .cpu = {.resolve = [](const EngineOptions& options, Plan& plan) -> Expected<void> {
                    // The byte products need VNNI to keep up with the memory.
                    if (plan.simd >= SimdLevel::avx512) plan.head = options.head;
                    return {};
                  },
                  .parts = {{.line = "head", .text = head_text}},
                  .row = LadderRow{.id = "screened_head",
                                   .title = "bounds single out the few logits that must be exact",
                                   .layer = 2,
                                   .targets = {},
                                   .off = set(&EngineOptions::head, HeadKind::full),
                                   .on = set(&EngineOptions::head, HeadKind::screened)}}};
}

OptionEntry fusion() {
  const auto name = [](const auto& plan) {
    return plan.fusion == Fusion::fused ? "fused" : "op by op";
  };
  LadderRow row{.id = "fused_layers",
                .title = "operations fused, few barriers",
                .layer = 3,
                .targets = {"ch01:sync_every_call"},
                .off = set(&EngineOptions::fusion, Fusion::op_by_op),
                .on = set(&EngineOptions::fusion, Fusion::fused)};
  LadderRow on_gpu = row;
  on_gpu.title = "operations fused into the products beside them";
  on_gpu.targets = {"ch06:shared_stencil"};
  return {.flag = word_flag<EngineOptions, Fusion>(
              "--fusion", &EngineOptions::fusion,
              {{"fused", Fusion::fused}, {"op-by-op", Fusion::op_by_op}},
              "operations joined to few passes or kernels, or one each (default: fused)"),
          .cpu = {.resolve = [](const EngineOptions& options, Plan& plan) -> Expected<void> {
                    plan.fusion = options.fusion;
                    return {};
                  },
                  .parts = {{.line = "layers", .text = name}},
                  .row = row},
          .cuda = {.resolve = [](const EngineOptions& options, const GpuTraits&,
                                 CudaPlan& plan) -> Expected<void> {
                     plan.fusion = options.fusion;
                     return {};
                   },
                   .parts = {{.line = "layers", .text = name}},
                   .row = on_gpu}};
}

OptionEntry stages() {
  return {.flag = word_flag<EngineOptions, Stages>(
              "--stages", &EngineOptions::stages,
              {{"overlapped", Stages::overlapped}, {"apart", Stages::apart}},
              "on CPUs: threads go on as soon as what they need is there, or wait for each "
              "other after every stage (default: overlapped)"),
          .cpu = {.resolve = [](const EngineOptions& options, Plan& plan) -> Expected<void> {
                    // Operations one by one have nothing to overlap.
                    plan.stages = plan.fusion == Fusion::fused ? options.stages : Stages::apart;
                    return {};
                  },
                  .parts = {{.line = "layers",
                             .text =
                                 [](const Plan& plan) {
                                   return plan.stages == Stages::overlapped
                                              ? "stages of few tokens overlap"
                                              : "a barrier after each stage";
                                 }}},
                  .row = LadderRow{.id = "overlapped_stages",
                                   .title = "threads go on as soon as what they need is there",
                                   .layer = 4,
                                   .targets = {"ch01:sync_every_call"},
                                   .off = set(&EngineOptions::stages, Stages::apart),
                                   .on = set(&EngineOptions::stages, Stages::overlapped)}}};
}

}  // namespace

OptionTable shared_options() {
  return {threads(), simd(), activations(), kv_dtype(), attention(),
          experts(), head(), fusion(),      stages()};
}

}  // namespace gauntlet::engine
