// The JSON of expectations: version 2 as written, version 1 as it is still read.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lab/records/expectations.h"

namespace gauntlet::lab::inline records {

nlohmann::json to_json(const Expectation& expectation);
/// Throws for what does not fit.
Expectation expectation_from_json(const nlohmann::json& json, int version);

}  // namespace gauntlet::lab::inline records
