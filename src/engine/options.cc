#include "engine/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/threads.h"

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
            .attention = options.attention,
            .expert_weights = options.experts,
            .kv = options.kv};
  const std::vector<int> allowed = allowed_cpus();
  const int threads = options.threads == 0 ? static_cast<int>(allowed.size()) : options.threads;
  for (int i = 0; i < threads; ++i) plan.cpus.push_back(allowed[i % allowed.size()]);
  // Rounded activations are faster wherever there are wide integer products; the portable level
  // emulates them and is slower.
  const bool rounded =
      options.activations == Activations::int8 ||
      (options.activations == Activations::automatic && *level != SimdLevel::portable);
  if (rounded) {
    plan.dense = *level == SimdLevel::avx512_bf16 ? Precision::bf16 : Precision::f32;
    plan.experts = options.experts == ExpertWeightsKind::mxfp4 ? Precision::int8 : plan.dense;
  }
  return plan;
}

std::string Plan::activations() const {
  return std::string(name_of(experts == Precision::f32 ? dense : experts));
}

std::vector<std::string> Plan::describe() const {
  const auto simd_name = kernels::cpu::name_of(simd);
  return {
      fmt::format("threads: {}, pinned", cpus.size()),
      fmt::format("dense: bf16 x {}, {}", name_of(dense), simd_name),
      fmt::format("experts: {} x {}, {}",
                  expert_weights == ExpertWeightsKind::mxfp4 ? "mxfp4" : "bf16", name_of(experts),
                  simd_name),
      fmt::format("attention: {}, {}", attention == AttentionKind::flash ? "flash" : "naive",
                  simd_name),
      fmt::format("layers: {}", fusion == Fusion::fused ? "fused" : "op by op"),
      fmt::format("kv: {}, paged", kv == KvType::f32 ? "f32" : "bf16"),
  };
}

}  // namespace gauntlet::engine
