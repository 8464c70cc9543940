#include <sys/statvfs.h>

#include <filesystem>

#include "core/machine/host.h"
#include "core/os/dynamic_library.h"
#include "lab/doctor/doctor.h"
#include "lab/doctor/libraries.h"

namespace gauntlet::lab::doctor {
namespace {

/// Of the disk a folder is on, or will be on once it is made.
std::optional<DiskSpace> space_of(std::filesystem::path folder) {
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return std::nullopt;
  const auto block = static_cast<std::int64_t>(status.f_frsize);
  return DiskSpace{.total_bytes = static_cast<std::int64_t>(status.f_blocks) * block,
                   .free_bytes = static_cast<std::int64_t>(status.f_bavail) * block};
}

template <class T>
std::optional<T> known(Expected<T> answer) {
  if (!answer) return std::nullopt;
  return std::move(*answer);
}

NvmlFacts ask_nvml() {
  const auto nvml = Nvml::open();
  if (!nvml) return {.missing = nvml.error().message};
  NvmlFacts facts{.driver_version = known((*nvml)->driver_version()).value_or("")};
  for (int gpu = 0; gpu < (*nvml)->device_count(); ++gpu) {
    facts.gpus.push_back({.persistence_mode = known((*nvml)->persistence_mode(gpu)),
                          .mig_enabled = known((*nvml)->mig_enabled(gpu)),
                          .state = known((*nvml)->state(gpu)),
                          .max_sm_clock_mhz = known((*nvml)->max_sm_clock_mhz(gpu)),
                          .power_limit_w = known((*nvml)->power_limit_w(gpu)),
                          .foreign_processes = known((*nvml)->foreign_processes(gpu))});
  }
  return facts;
}

LibraryFacts look_for(const std::string& name) {
  const auto library = DynamicLibrary::open({.names = {name}, .folders = cuda_library_folders()});
  if (!library) return {.name = name, .missing = library.error().message};
  return {.name = name, .path = library->path()};
}

}  // namespace

DoctorContext this_machine(const std::string& folder) {
  const SystemFiles files;
  const std::filesystem::path place = (std::filesystem::current_path() / folder).lexically_normal();
  const HostProbe host = probe_host();
  DoctorContext context{.files = files,
                        .cpus = host.cpus,
                        .hypervisor = read_host(files, host).hypervisor,
                        .shared_memory = space_of("/dev/shm"),
                        .disk = space_of(place),
                        .folder = place.string(),
                        .cuda = query_gpus()};
  if (context.cuda.gpus.empty()) return context;
  context.nvml = ask_nvml();
  for (const RuntimeLibrary& library : runtime_libraries()) {
    context.libraries.push_back(look_for(library.name));
  }
  return context;
}

}  // namespace gauntlet::lab::doctor
