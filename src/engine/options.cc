#include "engine/options.h"

#include <fmt/format.h>

#include "core/text/text.h"
#include "engine/option_table.h"

namespace gauntlet::engine {

Expected<Plan> resolve(const EngineOptions& options) { return resolve(options, option_table()); }

Expected<CudaPlan> resolve(const EngineOptions& options, const GpuTraits& gpu) {
  return resolve(options, gpu, option_table());
}

std::vector<std::string> Plan::describe() const { return engine::describe(*this, option_table()); }

std::string_view name_of(kernels::cpu::Precision precision) {
  using kernels::cpu::Precision;
  return precision == Precision::f32 ? "f32" : precision == Precision::bf16 ? "bf16" : "int8";
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
  return std::string(name_of(experts == kernels::cpu::Precision::f32 ? dense : experts));
}

}  // namespace gauntlet::engine
