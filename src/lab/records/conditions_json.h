// The JSON of what a machine did while a target was timed: of results, and between a worker and its
// parent.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "lab/records/result.h"

namespace gauntlet::lab::inline records {

nlohmann::json to_json(const Conditions& conditions);
/// Fields that are missing take their defaults.
Conditions conditions_from_json(const nlohmann::json& json);

}  // namespace gauntlet::lab::inline records
