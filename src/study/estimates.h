// Times of a cell as figures with intervals.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "stats/statistics.h"

namespace gauntlet::study {

nlohmann::json to_json(const lab::Estimate& estimate);
lab::Estimate estimate_from_json(const nlohmann::json& json);

/// Which side of a duel.
enum class SideOf { a, b };

/// How many times faster side b was, of one bout.
lab::Estimate gain_of(const std::vector<lab::Block>& blocks);
/// Likewise over all bouts of a duel but those beside: the geometric mean, round by round.
lab::Estimate overall_gain(const nlohmann::json& bouts);

/// Of side a or b: {name, batch, context, tokens, ms, tok_s, percent_of_limit, bound_by}.
nlohmann::json figures_of(const nlohmann::json& bout, SideOf side);
/// {ratio, label} of each bout by name, and of all of them.
nlohmann::json gains_of(const nlohmann::json& bouts);

/// Median and interval of repeated times, in ms.
lab::Estimate estimate_ms(const nlohmann::json& times);

}  // namespace gauntlet::study
