// Capabilities: may this target run here, and if not, what exactly is missing?
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/machine/machine.h"
#include "lab/records/result.h"
#include "lab/targets/target.h"

namespace gauntlet::lab::inline run {

/// How each need that has a plain name is looked for; an error says what is missing and what to do.
/// Needs with a number ("2 GPUs", "sm_90a") follow from the machine's description instead.
using Probes = std::map<std::string, std::function<Expected<void>()>>;
Probes probes_of(const MachineInfo& machine);

/// Whether ranks can be processes: mpirun and its library are both there.
Expected<void> probe_mpi();

/// Empty when the target can run; otherwise the sentence that goes with `skipped`. `ranks` is how
/// the run would start them.
std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine, const RankSetup& ranks,
                               const Probes& probes);
std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine, const RankSetup& ranks);

/// The yardsticks of a target that can run whose own needs are not met.
std::vector<AbsentSide> absent_yardsticks(const Target& target, BackendKind backend,
                                          const MachineInfo& machine, const RankSetup& ranks,
                                          const Probes& probes);
std::vector<AbsentSide> absent_yardsticks(const Target& target, BackendKind backend,
                                          const MachineInfo& machine, const RankSetup& ranks);

}  // namespace gauntlet::lab::inline run
