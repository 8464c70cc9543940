// Joules per token of a layer, where the machine tells what it uses.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "study/sizes.h"
#include "study/workbench.h"

namespace gauntlet::study {

/// Decoding at batch 1 and the most, or serving, for as long as counters take to show it. An error
/// where the machine does not tell.
Expected<nlohmann::json> measure_energy(Workbench& bench, const Sizes& sizes, int layer);

}  // namespace gauntlet::study
