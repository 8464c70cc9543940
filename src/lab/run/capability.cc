#include "lab/run/capability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <regex>

#include "core/cuda/cublas.h"

namespace gauntlet::lab::inline run {
namespace {

std::string missing_need(const std::string& need, const MachineInfo& machine) {
  const GpuInfo& gpu = machine.gpus.front();
  std::smatch match;
  if (std::regex_match(need, match, std::regex("sm_([0-9]+)(a?)"))) {
    const int wanted = std::atoi(match[1].str().c_str());
    const int have = gpu.compute_major * 10 + gpu.compute_minor;
    // An "a" target uses instructions of that one generation; others run on anything newer.
    const bool fits = match[2].length() > 0 ? have == wanted : have >= wanted;
    return fits ? "" : fmt::format("needs {}, {} is sm_{}", need, gpu.name, have);
  }
  if (std::regex_match(need, match, std::regex("([0-9]+) GPUs"))) {
    const auto wanted = static_cast<std::size_t>(std::atoi(match[1].str().c_str()));
    return machine.gpus.size() >= wanted
               ? ""
               : fmt::format("needs {}, there is {}", need, machine.gpus.size());
  }
  if (need == "cublas") {
    return cublas_available() ? ""
                              : "needs cuBLAS (libcublas.so.13), which was not found: install the "
                                "CUDA toolkit's libraries or set CUDA_HOME";
  }
  return fmt::format("needs {}, which this lab cannot check", need);
}

}  // namespace

bool known_capability(const std::string& need) {
  return need == "cublas" || std::regex_match(need, std::regex("sm_[0-9]+a?|[0-9]+ GPUs"));
}

std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine) {
  if (!target.has(backend)) return fmt::format("has no {} sides", name_of(backend));
  if (backend == BackendKind::cpu) {
#if defined(__x86_64__)
    if (std::ranges::find(machine.cpu.simd, "avx2") == machine.cpu.simd.end()) {
      return "CPU sides are compiled for x86-64-v3, this CPU has no AVX2";
    }
#endif
    return "";
  }
  if (machine.gpus.empty()) return machine.no_gpu_reason;
  for (const std::string& need : target.needs(backend)) {
    if (std::string missing = missing_need(need, machine); !missing.empty()) return missing;
  }
  return "";
}

}  // namespace gauntlet::lab::inline run
