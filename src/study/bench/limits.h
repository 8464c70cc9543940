// The machine's measured ceilings as the rates that bound a step of the engine.
#pragma once
#include <string>

#include "core/machine/machine.h"
#include "engine/measure/speed.h"
#include "lab/ceilings/ceilings.h"

namespace gauntlet::study::inline bench {

/// The machine's rates for so many threads, and the memory that the weights are read from.
struct Limits {
  engine::MachineRates rates;
  std::string read_from;  // a ceiling's name; empty: no ceilings
};

/// Weights that stay in a cache are read from there: its bandwidth is the limit, not the memory's.
Limits limits_of(const lab::Ceilings& ceilings, const CpuInfo& cpu, const engine::Executor& on);

}  // namespace gauntlet::study::inline bench
