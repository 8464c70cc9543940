// Is this machine fit to be measured, and what should be changed? A checklist whose answers are
// found, not assumed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cuda/device.h"
#include "core/machine/nvml.h"
#include "core/os/system_files.h"

namespace gauntlet::lab::doctor {

struct Finding {
  enum class Level { ok, warn, fail, unknown };

  std::string
      area;  // "cpu", "numa", "memory", "interrupts", "limits", "timing", "profiling", "gpu"
  std::string name;
  Level level = Level::unknown;
  std::string reason;
  std::string fix;  // the exact command or setting; empty when all is well
};

const char* name_of(Finding::Level level);

struct DiskSpace {
  std::int64_t total_bytes = 0;
  std::int64_t free_bytes = 0;
};

/// One GPU as NVML shows it; what could not be asked is empty.
struct GpuFacts {
  std::optional<bool> persistence_mode;
  std::optional<bool> mig_enabled;
  std::optional<GpuState> state;
  std::optional<double> max_sm_clock_mhz;
  std::optional<double> power_limit_w;
  std::optional<std::vector<GpuProcess>> foreign_processes;
};

struct NvmlFacts {
  std::string missing;  // why there are no facts
  std::string driver_version;
  std::vector<GpuFacts> gpus;
};

struct LibraryFacts {
  std::string name;
  std::string path;     // empty when it was not found
  std::string missing;  // the loader's reason
};

/// Everything the checks look at; tests fill it with machines we do not have.
struct DoctorContext {
  SystemFiles files;
  std::vector<int> cpus;                   // this process may run on
  std::string hypervisor;                  // "kvm" or empty
  std::optional<DiskSpace> shared_memory;  // of /dev/shm
  std::optional<DiskSpace> disk;           // of `folder`
  std::string folder;                      // where results go
  GpuQuery cuda;
  NvmlFacts nvml;
  std::vector<LibraryFacts> libraries;
};

/// The machine we run on; `folder` is where results will be written. Asks the GPUs' driver.
DoctorContext this_machine(const std::string& folder);

std::vector<Finding> run_doctor(const DoctorContext& context);

}  // namespace gauntlet::lab::doctor
