// The block bootstrap: intervals of statistics over samples whose neighbours are correlated. Whole
// blocks are drawn, never single samples; where blocks come in groups (processes), groups first.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "stats/interval.h"

namespace gauntlet::stats {

/// Blocks drawn of one drawn group.
struct DrawnGroup {
  std::size_t group = 0;
  std::vector<std::size_t> blocks;
};
using Drawing = std::vector<DrawnGroup>;

/// Writes the values of all statistics over the drawn blocks.
using Statistics = std::function<void(const Drawing& drawing, std::span<double> values)>;

struct BootstrapOptions {
  int resamples = 2000;
  std::uint64_t seed = 17;
};

/// 95% intervals around `values`, which are the statistics over all blocks. Few groups (or, where
/// there is one group, few blocks) are too alike when drawn: with N of them the interval is
/// widened by sqrt(N/(N-1)). Positive values are handled as logarithms, since times and ratios
/// vary by factors: on a linear scale a noisy ratio of 20 would reach down to 0.
std::vector<Interval> bootstrap(std::span<const std::size_t> blocks_per_group,
                                std::span<const double> values, const Statistics& statistics,
                                const BootstrapOptions& options = {});

}  // namespace gauntlet::stats
