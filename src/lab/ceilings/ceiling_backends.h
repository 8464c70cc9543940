// What measure_ceilings() is put together from: one function per backend, and how a try is
// recorded.
#pragma once
#include <filesystem>

#include "lab/ceilings/ceiling_probe.h"
#include "lab/ceilings/ceilings.h"

namespace gauntlet::lab::inline ceilings {

using CeilingProgress = std::function<void(const std::string&)>;

/// Adds a try by the times of its samples; the best becomes the ceiling.
void record(Ceilings& ceilings, const Probe& probe, std::vector<double> seconds);

Expected<Ceilings> measure_cpu_ceilings(const MachineInfo& machine,
                                        const CeilingProgress& progress);
/// Adds disk_read: sequential reads of a file in the folder for temporary files by every method.
/// What is no disk has none.
void measure_disk_ceiling(const std::filesystem::path& folder, Ceilings& ceilings);
Expected<Ceilings> measure_cuda_ceilings(const MachineInfo& machine,
                                         const CeilingProgress& progress);

}  // namespace gauntlet::lab::inline ceilings
