// What the engine can switch on and off, and the plan those options resolve to on this machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"
#include "kernels/cpu/kernels.h"
#include "model/config.h"

namespace gauntlet::engine {

enum class Activations { f32, int8, automatic };
enum class Fusion { fused, op_by_op };
/// Whether a CPU's thread goes on as soon as what it needs itself is there, or when all have ended
/// a stage.
enum class Stages { overlapped, apart };
enum class AttentionKind { flash, naive };
enum class ExpertWeightsKind { mxfp4, dequantised };
/// Whether a greedy token is found among a few exact logits, which bounds single out, or among all.
enum class HeadKind { screened, full };
enum class KvType { f32, bf16, fp8 };
enum class Backend { cpu, cuda };
/// How weights reach the tensor cores for many tokens: bulk copies by a warp of their own, or each
/// warp's loads.
enum class Pipelines { bulk, plain };
enum class Graphs { on, off };
enum class DependentLaunch { on, off };
enum class ProductUnit { tensor_cores, cuda_cores };
/// How weights lie in memory: in the order in which lanes of tensor cores take them, or row by row.
enum class WeightLayout { fragments, rows };
/// Pages handed out as sequences grow, or one run of them for each sequence's greatest length.
enum class KvLayout { paged, contiguous };
/// Where a step's inputs leave from and its tokens arrive.
enum class HostMemory { pinned, pageable };
/// Whether a request's logits may change with its batch mates (kernels are chosen by batch size).
enum class Determinism { per_request, per_batch };

/// What the CUDA engine can switch off, besides what it shares with the CPU's.
struct CudaOptions {
  ProductUnit products = ProductUnit::tensor_cores;
  WeightLayout weight_layout = WeightLayout::fragments;
  Pipelines pipelines = Pipelines::bulk;
  Graphs graphs = Graphs::on;
  DependentLaunch dependent_launch = DependentLaunch::on;
  KvLayout kv_layout = KvLayout::paged;
  HostMemory host_memory = HostMemory::pinned;
  Determinism determinism = Determinism::per_batch;
};

/// Every optimization; what each means, and its honest off position, is an entry of option_table.h.
struct EngineOptions {
  std::optional<kernels::cpu::SimdLevel> simd;  // none: the best this machine has
  int threads = 0;                              // 0: one per CPU this process may use
  Activations activations = Activations::f32;
  Fusion fusion = Fusion::fused;
  Stages stages = Stages::overlapped;
  AttentionKind attention = AttentionKind::flash;
  ExpertWeightsKind experts = ExpertWeightsKind::mxfp4;
  HeadKind head = HeadKind::screened;
  std::optional<KvType> kv;  // none: f32 on CPUs, but bf16 with automatic activations and on a GPU
  CudaOptions cuda;
};

/// How a GPU's memory is shared.
struct CudaMemory {
  std::int64_t free_bytes = 0;  // before anything was taken
  std::int64_t weight_bytes = 0;
  std::int64_t workspace_bytes = 0;
  std::int64_t kv_bytes = 0;

  std::int64_t all_bytes() const { return weight_bytes + workspace_bytes + kv_bytes; }
  /// "12.9 GiB weights, 2.1 GiB workspace, 0.3 GiB KV of 139 GiB free".
  std::string describe() const;
};

/// What a plan needs to know of a GPU.
struct GpuTraits {
  std::string name;
  int num_sms = 0;
  bool has_bulk_copies = false;  // and the tensor-core instructions fed by them
};

/// What runs on a GPU.
struct CudaPlan {
  std::string device;
  int num_sms = 0;
  ExpertWeightsKind expert_weights = ExpertWeightsKind::mxfp4;
  AttentionKind attention = AttentionKind::flash;
  Fusion fusion = Fusion::fused;
  KvType kv = KvType::bf16;
  CudaOptions variants;                 // each as resolved
  std::vector<std::string> companions;  // what a variant forced that was not asked for, and why
  std::int64_t reserved_positions = 0;  // of each sequence, where KV is contiguous
  CudaMemory memory;
};

/// A step wants at most so many greedy tokens for its head to be screened: beyond, the byte
/// products take longer than reading the weights.
inline constexpr std::int64_t kScreenedRows = 4;

/// What runs: each option resolved to a named variant.
struct Plan {
  kernels::cpu::SimdLevel simd = kernels::cpu::SimdLevel::portable;
  std::vector<int> cpus;  // one thread each, pinned; a CPU named twice is shared
  kernels::cpu::Precision dense = kernels::cpu::Precision::f32;
  kernels::cpu::Precision experts = kernels::cpu::Precision::f32;
  Fusion fusion = Fusion::fused;
  Stages stages = Stages::overlapped;
  AttentionKind attention = AttentionKind::flash;
  ExpertWeightsKind expert_weights = ExpertWeightsKind::mxfp4;
  HeadKind head = HeadKind::full;
  std::int64_t screen_bytes = 0;  // that a screened head takes beside the exact one
  KvType kv = KvType::f32;
  std::optional<CudaPlan> cuda;  // of an executor on a GPU, which has no use for the others

  /// "f32", "int8"; "bf16" on a GPU.
  std::string activations() const;
  /// Whether a step that wants so many greedy tokens, and nothing else, screens its head.
  bool screens(std::int64_t rows) const {
    return head == HeadKind::screened && rows > 0 && rows <= kScreenedRows;
  }
  /// One line per operation: "experts: mxfp4 x int8, avx512-bf16".
  std::vector<std::string> describe() const;
};

/// Holds an error when an option asks for what this machine lacks.
Expected<Plan> resolve(const EngineOptions& options);
/// On a GPU. Its memory is not shared out yet.
Expected<CudaPlan> resolve(const EngineOptions& options, const GpuTraits& gpu);

std::string_view name_of(kernels::cpu::Precision precision);
std::string_view name_of(Activations activations);
std::string_view name_of(KvType type);

}  // namespace gauntlet::engine
