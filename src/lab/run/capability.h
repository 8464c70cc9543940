// Capabilities: may this target run here, and if not, what exactly is missing?
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/machine.h"
#include "lab/author/target.h"

namespace gauntlet::lab::inline run {

/// How each need that has a plain name is looked for; an error says what is missing and what to do.
/// Needs with a number ("2 GPUs", "sm_90a") follow from the machine's description instead.
using Probes = std::map<std::string, std::function<Expected<void>()>>;
Probes probes_of(const MachineInfo& machine);

/// Empty when the target can run; otherwise the sentence that goes with `skipped`.
std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine, const Probes& probes);
std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine);

/// Every need the lab can check, those with a number as "<n> GPUs".
std::vector<std::string> capabilities();
/// Is this a capability the lab can check?
bool known_capability(const std::string& need);
/// One that only a GPU has: no need of CPU sides.
bool gpu_capability(const std::string& need);

}  // namespace gauntlet::lab::inline run
