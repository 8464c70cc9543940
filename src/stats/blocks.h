// Blocks of samples taken in turns, and what they say about two sides: the ratio with its interval.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "stats/interval.h"

namespace gauntlet::stats {

/// Every side twice, once in an order and once in its mirror image, within milliseconds: ABBA for
/// two sides. Drift that is linear over a block cancels in its ratios. Times of one run.
struct Block {
  std::vector<std::array<double, 2>> ns;  // [sides]

  double mean(std::size_t side) const { return (ns[side][0] + ns[side][1]) / 2; }
  /// How many times faster `to` is than `from`.
  double ratio(std::size_t from, std::size_t to) const { return mean(from) / mean(to); }
};

using ProcessBlocks = std::vector<Block>;
/// What is estimated from a block: a positive number.
using BlockStatistic = std::function<double(const Block&)>;

/// The median over processes of their medians over blocks, so that a process weighs the same
/// however many blocks it needed, with a 95% interval: the hull of two. One is the block
/// bootstrap. The other is Student's over the medians of the processes: three processes cannot
/// show by resampling how far the next one may be off, and where they differ more than their
/// blocks the bootstrap alone covers the truth only four times in five. One process has no second.
Interval estimate(const std::vector<ProcessBlocks>& processes, const BlockStatistic& statistic,
                  std::uint64_t seed = 17);

/// The ratio of two sides over all processes.
Interval estimate_ratio(const std::vector<ProcessBlocks>& processes, std::size_t from,
                        std::size_t to, std::uint64_t seed = 17);

}  // namespace gauntlet::stats
