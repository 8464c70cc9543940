// Metrics: the numbers of each side beyond its time, with intervals where there are data for one.
#pragma once
#include "lab/measure/measure.h"
#include "lab/records/result.h"

namespace gauntlet::lab::inline run {

void add_metrics(Result& result, const Target& target, const Knobs& knobs,
                 const std::vector<Measurement>& processes);

/// How much better the goal metric got between two sides, as a ratio above 1; a value of 0 where
/// one of them has none.
stats::Interval metric_gain(const Result& result, const Target& target, const SidePair& sides);

}  // namespace gauntlet::lab::inline run
