// The JSON of an interval: {"value", "lo", "hi"}, null for what is not known.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "stats/interval.h"

namespace gauntlet::stats {

nlohmann::json to_json(const Interval& interval);
/// Also reads "median" in place of "value", as files of earlier versions have it. Throws
/// nlohmann's exceptions for anything else.
Interval interval_from_json(const nlohmann::json& json);

}  // namespace gauntlet::stats
