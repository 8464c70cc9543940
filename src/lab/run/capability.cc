#include "lab/run/capability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "core/cuda/cublas.h"
#include "core/gpu_driver.h"
#include "core/host_features.h"
#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "lab/profile/profiler_backends.h"

namespace gauntlet::lab::inline run {
namespace {

/// A need with a number in it: what it looks like, and the sentence where the machine falls short.
struct NumberedNeed {
  const char* shown;
  const char* pattern;
  enum class Of { host, gpu } of;
  std::string (*missing)(const std::smatch& match, const MachineInfo& machine);
};

int number_in(const std::smatch& match) { return std::atoi(match[1].str().c_str()); }

std::string missing_architecture(const std::smatch& match, const MachineInfo& machine) {
  if (machine.gpus.empty()) return fmt::format("needs {}: no GPU was found", match.str());
  const GpuInfo& gpu = machine.gpus.front();
  const int wanted = number_in(match);
  const int have = gpu.compute_major * 10 + gpu.compute_minor;
  // An "a" target uses instructions of that one generation; others run on anything newer.
  const bool fits = match[2].length() > 0 ? have == wanted : have >= wanted;
  return fits ? "" : fmt::format("needs {}, {} is sm_{}", match.str(), gpu.name, have);
}

std::string missing_gpus(const std::smatch& match, const MachineInfo& machine) {
  if (machine.gpus.size() >= static_cast<std::size_t>(number_in(match))) return "";
  return fmt::format("needs {}, there is {}", match.str(), machine.gpus.size());
}

std::string missing_nodes(const std::smatch& match, const MachineInfo& machine) {
  if (machine.cpu.numa_nodes >= number_in(match)) return "";
  return fmt::format(
      "needs {}, there is {}: run on more sockets, or split one in its firmware (NPS on AMD, SNC "
      "on Intel)",
      match.str(), machine.cpu.numa_nodes);
}

/// Threads of one process can always be ranks; what needs processes says "mpi", too.
std::string missing_ranks(const std::smatch&, const MachineInfo&) { return ""; }

constexpr NumberedNeed kNumbered[] = {
    {"sm_<n>", "sm_([1-9][0-9]*)(a?)", NumberedNeed::Of::gpu, missing_architecture},
    {"<n> GPUs", "([1-9][0-9]*) GPUs", NumberedNeed::Of::gpu, missing_gpus},
    {"<n> NUMA nodes", "([1-9][0-9]*) NUMA nodes", NumberedNeed::Of::host, missing_nodes},
    {"<n> ranks", "([1-9][0-9]*) ranks", NumberedNeed::Of::host, missing_ranks},
};

const NumberedNeed* numbered_need(const std::string& need, std::smatch& match) {
  for (const NumberedNeed& numbered : kNumbered) {
    if (std::regex_match(need, match, std::regex(numbered.pattern))) return &numbered;
  }
  return nullptr;
}

Expected<void> probe_mpi() {
  if (const auto mpirun = ranks::find_mpirun(); !mpirun) return mpirun.error();
  if (const auto library = ranks::find_mpi_library(); !library) return library.error();
  return {};
}

Expected<void> probe_perf_counters() {
  const auto profiler = make_perf_profiler();
  if (!profiler) return profiler.error();
  const auto counted = (*profiler)->collect({"cycles", "instructions"}, [] {}, {});
  if (!counted) return counted.error();
  return {};
}

Expected<void> probe_cublas() {
  if (cublas_available()) return {};
  return Error{
      "libcublas.so.13 was not found: install the CUDA toolkit's libraries or set CUDA_HOME"};
}

Expected<void> probe_cuda_library(const char* name, const char* package) {
  return probe_library({.names = {name}, .folders = cuda_library_folders()},
                       fmt::format("apt-get install {} of NVIDIA's repository", package));
}

std::string missing_need(const std::string& need, const MachineInfo& machine,
                         const Probes& probes) {
  std::smatch match;
  if (const NumberedNeed* numbered = numbered_need(need, match)) {
    return numbered->missing(match, machine);
  }
  const auto probe = probes.find(need);
  if (probe == probes.end()) return fmt::format("needs {}, which this lab cannot check", need);
  const auto probed = probe->second();
  return probed ? "" : fmt::format("needs {}: {}", need, probed.error().message);
}

}  // namespace

Probes probes_of(const MachineInfo& machine) {
  return {
      {"O_DIRECT", [] { return probe_direct_io(std::filesystem::temp_directory_path()); }},
      {"cublas", probe_cublas},
      {"cudnn", [] { return probe_cuda_library("libcudnn.so.9", "libcudnn9-cuda-13"); }},
      {"gds", [] { return probe_cuda_library("libcufile.so.0", "libcufile-13-0"); }},
      {"grace",
       [cpu = machine.cpu] {
         return probe_grace(cpu, gpu_attribute(GpuAttribute::reads_host_page_tables));
       }},
      {"huge pages", [] { return probe_huge_pages(SystemFiles()); }},
      {"io_uring", [] { return probe_io_uring(SystemFiles()); }},
      {"mpi", probe_mpi},
      {"nccl", [] { return probe_cuda_library("libnccl.so.2", "libnccl2"); }},
      {"nvls", [] { return probe_nvls(gpu_attribute(GpuAttribute::multicast)); }},
      {"perf counters", probe_perf_counters},
      {"rdma", [] { return probe_rdma(SystemFiles()); }},
  };
}

std::vector<std::string> capabilities() {
  std::vector<std::string> names;
  for (const auto& [name, probe] : probes_of({})) names.push_back(name);
  for (const NumberedNeed& numbered : kNumbered) names.emplace_back(numbered.shown);
  return names;
}

bool known_capability(const std::string& need) {
  std::smatch match;
  return numbered_need(need, match) != nullptr || probes_of({}).contains(need);
}

bool gpu_capability(const std::string& need) {
  std::smatch match;
  const NumberedNeed* numbered = numbered_need(need, match);
  if (numbered != nullptr) return numbered->of == NumberedNeed::Of::gpu;
  return need == "cublas" || need == "cudnn" || need == "gds" || need == "nvls";
}

std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine, const Probes& probes) {
  if (!target.has(backend)) return fmt::format("has no {} sides", name_of(backend));
  if (backend == BackendKind::cuda) {
    if (machine.gpus.empty()) return machine.no_gpu_reason;
  } else {
#if defined(__x86_64__)
    if (std::ranges::find(machine.cpu.simd, "avx2") == machine.cpu.simd.end()) {
      return "CPU sides are compiled for x86-64-v3, this CPU has no AVX2";
    }
#endif
  }
  for (const std::string& need : target.needs(backend)) {
    if (std::string missing = missing_need(need, machine, probes); !missing.empty()) {
      return missing;
    }
  }
  return "";
}

std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine) {
  return missing_capability(target, backend, machine, probes_of(machine));
}

}  // namespace gauntlet::lab::inline run
