// What this machine can do at most: kept from an earlier measurement, or measured now behind a
// progress line.
#pragma once
#include <string>

#include "core/machine/machine.h"
#include "lab/ceilings/ceilings.h"

namespace gauntlet::cli {

struct CeilingsWanted {
  lab::BackendKind backend = lab::BackendKind::cpu;
  const MachineInfo& machine;
  bool remeasure = false;  // whatever is kept
  std::string program;     // this executable, which measures in a process of its own
};
Expected<lab::Ceilings> obtain_ceilings(const CeilingsWanted& wanted);

}  // namespace gauntlet::cli
