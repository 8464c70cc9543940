#include "study/bench/limits.h"

#include <algorithm>

namespace gauntlet::study::inline bench {

Limits limits_of(const lab::Ceilings& ceilings, const CpuInfo& cpu, const engine::Executor& on) {
  if (on.plan().cuda) {
    return {.rates = {.read_bytes_per_s = 1e9 * ceilings.get("dram_read"),
                      .f32_flops_per_s = 1e9 * ceilings.get("fma_f32"),
                      .bf16_flops_per_s = 1e9 * ceilings.get("matrix_bf16"),
                      .int8_flops_per_s = 1e9 * ceilings.get("matrix_i8")},
            .read_from = "dram_read"};
  }
  const auto threads = static_cast<std::int64_t>(on.plan().cpus.size());
  const std::int64_t used = std::min<std::int64_t>(threads, cpu.cores);
  const auto rate = [&](const std::string& name) {
    const double all = ceilings.get(name), one = ceilings.get(name + "_1t");
    return 1e9 * (used == cpu.cores ? all : std::min(all, one * static_cast<double>(used)));
  };
  Limits limits{.read_from = on.weight_bytes() <= used * cpu.l2_bytes    ? "l2_read"
                             : on.weight_bytes() <= cpu.last_level_bytes ? "llc_read"
                                                                         : "dram_read"};
  limits.rates = {.read_bytes_per_s = rate(limits.read_from),
                  .f32_flops_per_s = rate("fma_f32"),
                  .bf16_flops_per_s = rate("fma_bf16"),
                  .int8_flops_per_s = rate("fma_i8")};
  return limits;
}

}  // namespace gauntlet::study::inline bench
