// Capabilities: may this target run here, and if not, what exactly is missing?
#pragma once
#include <string>

#include "core/machine.h"
#include "lab/author/target.h"

namespace gauntlet::lab::inline run {

/// Empty when the target can run; otherwise the sentence that goes with `skipped`.
std::string missing_capability(const Target& target, BackendKind backend,
                               const MachineInfo& machine);

/// Is this a capability the lab can check?
bool known_capability(const std::string& need);

}  // namespace gauntlet::lab::inline run
