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
/// The same where a sample may be lucky: methods are held against each other by their medians.
void record_median(Ceilings& ceilings, const Probe& probe, std::vector<double> seconds);

Expected<Ceilings> measure_cpu_ceilings(const MachineInfo& machine,
                                        const CeilingProgress& progress);
/// Adds disk_read: reads in order of parts of a file in this folder, by every method. What is no
/// disk has none.
void add_disk_ceiling(const std::filesystem::path& folder, Ceilings& ceilings);
Expected<Ceilings> measure_cuda_ceilings(const MachineInfo& machine,
                                         const CeilingProgress& progress);

}  // namespace gauntlet::lab::inline ceilings
