// Times of a cell as figures with intervals.
#pragma once
#include <vector>

#include "stats/blocks.h"
#include "study/bench/duel.h"
#include "study/results/gain.h"
#include "study/serving.h"

namespace gauntlet::study::inline results {

/// Which side of a duel.
enum class SideOf { a, b };

/// The gain of each bout by name, and of all of them but those beside: the geometric mean, round by
/// round.
Gain gain_of(const Duel& duel);
Gain gain_of(const ServeDuel& duel);

Figure figure_of(const Bout& bout, SideOf side);
EngineFigures engine_figures(const Duel& duel, SideOf side);

/// Median and interval of repeated times.
stats::Interval estimate_ms(const std::vector<double>& times);

}  // namespace gauntlet::study::inline results
