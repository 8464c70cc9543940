// Reading what schema version 1 kept of a pair: two sides, one speedup, one witness.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "lab/records/result.h"

namespace gauntlet::lab::inline records {

/// Fills in sides, comparisons, verification, metrics and counters; the other fields are the same
/// in both versions. Throws for what does not fit.
void read_sides_v1(const nlohmann::json& from, Result& result);

}  // namespace gauntlet::lab::inline records
