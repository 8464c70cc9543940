// Where a host thread that feeds a GPU, and its buffers, can be: next to the GPU, or as far away
// from it as this machine allows.
#pragma once
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/machine/numa.h"
#include "core/os/system_files.h"

namespace gauntlet {

/// Two NUMA nodes, with those of their CPUs that this process may run on.
struct GpuPlaces {
  NumaNode near;  // the GPU's
  NumaNode far;   // of the others the farthest from it
};

/// Of the GPU at a PCI address, for a process that may run on these CPUs. The error says why there
/// are not two such nodes: the system does not tell the GPU's, or the process may not run there, or
/// nowhere else.
Expected<GpuPlaces> places_of_gpu(const SystemFiles& files, const std::string& address,
                                  const std::vector<int>& cpus);
/// Of the first GPU that the driver shows, for this process.
Expected<GpuPlaces> places_of_first_gpu();

}  // namespace gauntlet
