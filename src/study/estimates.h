// Times of a cell as figures with intervals.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "stats/blocks.h"

namespace gauntlet::study {

/// Which side of a duel.
enum class SideOf { a, b };

/// How many times faster side b was, of one bout.
stats::Interval gain_of(const stats::ProcessBlocks& blocks);
/// Likewise over all bouts of a duel but those beside: the geometric mean, round by round.
stats::Interval overall_gain(const nlohmann::json& bouts);

/// Of side a or b: {name, batch, context, tokens, ms, tok_s, percent_of_limit, bound_by}.
nlohmann::json figures_of(const nlohmann::json& bout, SideOf side);
/// {ratio, label} of each bout by name, and of all of them; and the conditions of the duel.
nlohmann::json gains_of(const nlohmann::json& duel);

/// Median and interval of repeated times, in ms.
stats::Interval estimate_ms(const nlohmann::json& times);

}  // namespace gauntlet::study
