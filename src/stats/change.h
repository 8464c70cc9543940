// One rule for "the same": what two figures, each with its interval, say about each other.
#pragma once
#include <string>

#include "stats/interval.h"

namespace gauntlet::stats {

enum class Change { same, higher, lower, unclear };

/// Two figures this near count as equal.
inline constexpr double kSameWithin = 0.05;

/// higher, lower: the interval of the ratio lies beyond 1. same: it holds 1 and lies within
/// ±kSameWithin of it. unclear: it holds 1 and is wider, or it is not known.
Change change(const Interval& ratio);

/// Whether a ratio is a gain: all of its interval above the bar, all of it below 1, or neither.
enum class Gain { gain, no_gain, loss };
Gain gain(const Interval& ratio, double bar = 1);

const char* name_of(Change change);
const char* name_of(Gain gain);   // "no_gain"
std::string words_of(Gain gain);  // "no gain"

}  // namespace gauntlet::stats
