// What the engine can switch on and off, and the plan those options resolve to on this machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "kernels/cpu/kernels.h"
#include "model/config.h"

namespace gauntlet::engine {

enum class Activations { f32, int8, automatic };
enum class Fusion { fused, op_by_op };
enum class AttentionKind { flash, naive };
enum class ExpertWeightsKind { mxfp4, dequantised };
enum class KvType { f32, bf16 };

/// Every optimization with its honest off position.
struct EngineOptions {
  std::optional<kernels::cpu::SimdLevel> simd;  // none: the best this machine has
  int threads = 0;                              // 0: one per CPU this process may use
  Activations activations = Activations::f32;
  Fusion fusion = Fusion::fused;
  AttentionKind attention = AttentionKind::flash;
  ExpertWeightsKind experts = ExpertWeightsKind::mxfp4;
  KvType kv = KvType::f32;
};

/// What runs: each option resolved to a named variant.
struct Plan {
  kernels::cpu::SimdLevel simd = kernels::cpu::SimdLevel::portable;
  std::vector<int> cpus;  // one thread each, pinned; a CPU named twice is shared
  kernels::cpu::Precision dense = kernels::cpu::Precision::f32;
  kernels::cpu::Precision experts = kernels::cpu::Precision::f32;
  Fusion fusion = Fusion::fused;
  AttentionKind attention = AttentionKind::flash;
  ExpertWeightsKind expert_weights = ExpertWeightsKind::mxfp4;
  KvType kv = KvType::f32;

  /// "f32" or "int8".
  std::string activations() const;
  /// One line per operation: "experts: mxfp4 x int8, avx512-bf16".
  std::vector<std::string> describe() const;
};

/// Holds an error when an option asks for what this machine lacks.
Expected<Plan> resolve(const EngineOptions& options);

}  // namespace gauntlet::engine
