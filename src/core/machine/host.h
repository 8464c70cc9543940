// The part of MachineInfo that needs no GPU, read out of /proc and /sys below any root.
#pragma once
#include <string>
#include <vector>

#include "core/machine/machine.h"
#include "core/os/system_files.h"

namespace gauntlet {

/// What the processor says rather than a file.
struct HostProbe {
  std::vector<int> cpus;             // this process may run on
  std::string hypervisor_signature;  // of CPUID 0x40000000, "KVMKVMKVM"; empty without one
};

HostProbe probe_host();

/// `gpus` and what belongs to them stay empty.
MachineInfo read_host(const SystemFiles& files, const HostProbe& probe);

}  // namespace gauntlet
