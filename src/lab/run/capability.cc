#include "lab/run/capability.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/check.h"
#include "core/cuda/cublas.h"
#include "core/machine/gpu_driver.h"
#include "core/machine/gpu_places.h"
#include "core/machine/host_features.h"
#include "core/os/data_folders.h"
#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "core/storage/direct_file.h"
#include "core/storage/io_ring.h"
#include "core/storage/lz4_library.h"
#include "lab/profile/profiler_backends.h"
#include "lab/targets/needs.h"

namespace gauntlet::lab::inline run {
namespace {

/// What needs with a number are held against.
struct Host {
  const MachineInfo& machine;
  const RankSetup& ranks;
};

std::string missing_architecture(const std::string& need, const NumberedNeed& numbered,
                                 const MachineInfo& machine) {
  if (machine.gpus.empty()) return fmt::format("needs {}: no GPU was found", need);
  const GpuInfo& gpu = machine.gpus.front();
  const int have = gpu.compute_major * 10 + gpu.compute_minor;
  // An "a" target uses instructions of that one generation; others run on anything newer.
  const bool fits = numbered.exactly ? have == numbered.number : have >= numbered.number;
  return fits ? "" : fmt::format("needs {}, {} is sm_{}", need, gpu.name, have);
}

std::string missing_number(const std::string& need, const NumberedNeed& numbered,
                           const Host& host) {
  const int wanted = numbered.number;
  switch (numbered.what) {
    case NumberedNeed::What::architecture:
      return missing_architecture(need, numbered, host.machine);
    case NumberedNeed::What::gpus:
      if (host.machine.gpus.size() >= static_cast<std::size_t>(wanted)) return "";
      return fmt::format("needs {}, there is {}", need, host.machine.gpus.size());
    case NumberedNeed::What::numa_nodes:
      if (host.machine.cpu.numa_nodes >= wanted) return "";
      return fmt::format(
          "needs {}, there is {}: run on more sockets, or split one in its firmware (NPS on AMD, "
          "SNC on Intel)",
          need, host.machine.cpu.numa_nodes);
    case NumberedNeed::What::ranks:
      // Threads of one process can always be ranks; what needs processes says "mpi", too. Other
      // backends start none.
      if (host.ranks.count == 0 || host.ranks.count >= wanted) return "";
      return fmt::format("needs {}, this run starts {}: use --ranks {}", need, host.ranks.count,
                         wanted);
  }
  fail("no such kind of need");
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

/// Of the models that come with the project, one that is no part of the program.
Expected<void> probe_model(const std::string& name) {
  std::error_code error;
  for (const auto& models : data_folders("models")) {
    if (std::filesystem::exists(models / name / "config.json", error)) return {};
  }
  return Error{
      fmt::format("there is no models/{} at or above the working directory or the program", name)};
}

std::string missing_need(const std::string& need, const Host& host, const Probes& probes) {
  if (const auto numbered = numbered_need(need)) return missing_number(need, *numbered, host);
  const auto probe = probes.find(need);
  if (probe == probes.end()) return fmt::format("needs {}, which this lab cannot check", need);
  const auto probed = probe->second();
  if (!probed) return fmt::format("needs {}: {}", need, probed.error().message);
  if (need == kMpi && host.ranks.transport == kThreads) {
    return "needs mpi, and the ranks of this run are threads: use --launcher mpi";
  }
  return "";
}

/// Of the first need that is not met.
std::string first_missing(const std::vector<std::string>& needs, const Host& host,
                          const Probes& probes) {
  for (const std::string& need : needs) {
    if (std::string missing = missing_need(need, host, probes); !missing.empty()) return missing;
  }
  return "";
}

}  // namespace

Expected<void> probe_mpi() {
  if (const auto mpirun = ranks::find_mpirun(); !mpirun) return mpirun.error();
  if (const auto library = ranks::find_mpi_library(); !library) return library.error();
  return {};
}

Probes probes_of(const MachineInfo& machine) {
  return {
      {"O_DIRECT", [] { return probe_direct_io(std::filesystem::temp_directory_path()); }},
      {"cublas", probe_cublas},
      {"cudnn", [] { return probe_cuda_library("libcudnn.so.9", "libcudnn9-cuda-13"); }},
      {"gauntlet-draft", [] { return probe_model("gauntlet-draft"); }},
      {"gauntlet-tiny-eagle3", [] { return probe_model("gauntlet-tiny-eagle3"); }},
      {"gds",
       [] {
         const auto available = DirectFile::available(SystemFiles());
         return available ? probe_cuda_library("libcufile.so.0", "libcufile-13-0") : available;
       }},
      {"gpu numa node",
       []() -> Expected<void> {
         const auto places = places_of_first_gpu();
         if (!places) return places.error();
         return {};
       }},
      {"grace",
       [cpu = machine.cpu] {
         return probe_grace(cpu, gpu_attribute(GpuAttribute::reads_host_page_tables));
       }},
      {"huge pages", [] { return probe_huge_pages(SystemFiles()); }},
      {"io_uring",
       [] {
         const auto compiled = IoRing::compiled();
         return compiled ? probe_io_uring(SystemFiles()) : compiled;
       }},
      {"lz4", lz4_compiled},
      {"mpi", probe_mpi},
      {"nccl", [] { return probe_cuda_library("libnccl.so.2", "libnccl2"); }},
      {"nvls", [] { return probe_nvls(gpu_attribute(GpuAttribute::multicast)); }},
      {"perf counters", probe_perf_counters},
      {"rdma", [] { return probe_rdma(SystemFiles()); }},
  };
}

std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine, const RankSetup& ranks,
                               const Probes& probes) {
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
  return first_missing(target.needs(backend), {machine, ranks}, probes);
}

std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine, const RankSetup& ranks) {
  return missing_capability(target, backend, machine, ranks, probes_of(machine));
}

std::vector<AbsentSide> absent_yardsticks(const Target& target, BackendKind backend,
                                          const MachineInfo& machine, const RankSetup& ranks,
                                          const Probes& probes) {
  std::vector<AbsentSide> absent;
  for (const SideSource& side : target.sides(backend)) {
    if (side.role != SideRole::yardstick) continue;
    const std::string missing =
        first_missing(target.needs_of(backend, side), {machine, ranks}, probes);
    if (!missing.empty()) absent.push_back({.name = side.name, .reason = missing});
  }
  return absent;
}

std::vector<AbsentSide> absent_yardsticks(const Target& target, BackendKind backend,
                                          const MachineInfo& machine, const RankSetup& ranks) {
  return absent_yardsticks(target, backend, machine, ranks, probes_of(machine));
}

}  // namespace gauntlet::lab::inline run
