// Figures as the JSON of results has them: six digits, and null for what is not finite.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "load/statistics.h"

namespace gauntlet::load {

nlohmann::ordered_json rounded(double value);
nlohmann::ordered_json figure_json(const Figure& figure);
nlohmann::ordered_json percentiles_json(const Percentiles& latency);

}  // namespace gauntlet::load
