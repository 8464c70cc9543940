// Medians and intervals that respect how the samples were taken: blocks within processes,
// neighbours correlated.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lab/result.h"

namespace gauntlet::lab {

double median(std::vector<double> values);

/// Interquartile range over the median.
double spread(const std::vector<double>& values);

/// One ABBA block: two samples of each side, taken within milliseconds of each other. Times of one
/// run.
struct Block {
  double baseline_ns[2] = {0, 0};
  double optimized_ns[2] = {0, 0};

  double ratio() const {
    return (baseline_ns[0] + baseline_ns[1]) / (optimized_ns[0] + optimized_ns[1]);
  }
};

using ProcessBlocks = std::vector<Block>;

/// What is estimated from a set of blocks.
using BlockStatistic = std::function<double(const Block&)>;

/// Median of a statistic over all blocks with a 95% interval: the hull of two. One is a two-level
/// bootstrap: processes are drawn with replacement, then blocks within each, and the interval of P
/// processes is widened by sqrt(P/(P-1)), which undoes the bootstrap's known bias for few clusters.
/// The other is Student's over the medians of the processes: three processes cannot show by
/// resampling how far the next one may be off, and where they differ more than their blocks the
/// bootstrap alone covers the truth only four times in five. One process has no second. Times and
/// ratios are positive and vary by factors, so both work on logarithms: on a linear scale a noisy
/// ratio of 20 would reach down to 0.
Estimate estimate(const std::vector<ProcessBlocks>& processes, const BlockStatistic& statistic,
                  std::uint64_t seed);

/// Half the interval's width over its median.
double relative_half_width(const Estimate& estimate);

}  // namespace gauntlet::lab
