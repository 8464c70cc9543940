// Figures as the JSON of a load test has them: six digits, and null for what is not finite.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "stats/percentiles.h"

namespace gauntlet::load::inline results {

nlohmann::ordered_json rounded(double value);
nlohmann::ordered_json figure_json(const stats::Interval& figure);
nlohmann::ordered_json percentiles_json(const stats::Percentiles& latency);

}  // namespace gauntlet::load::inline results
