// What measure_ceilings() is put together from: one function per backend, and how a try is
// recorded.
#pragma once
#include "lab/ceilings/ceiling_probe.h"
#include "lab/ceilings/ceilings.h"

namespace gauntlet::lab::inline ceilings {

using CeilingProgress = std::function<void(const std::string&)>;

/// Adds a try by the times of its samples; the best becomes the ceiling.
void record(Ceilings& ceilings, const Probe& probe, std::vector<double> seconds);

Expected<Ceilings> measure_cpu_ceilings(const MachineInfo& machine,
                                        const CeilingProgress& progress);
Expected<Ceilings> measure_cuda_ceilings(const MachineInfo& machine,
                                         const CeilingProgress& progress);

}  // namespace gauntlet::lab::inline ceilings
