// Percentiles and rates of values that come in time: neighbours share a queue, so intervals are
// bootstrapped over blocks of neighbours, never over single values.
#pragma once
#include <cstdint>
#include <vector>

#include "stats/interval.h"

namespace gauntlet::stats {

struct Percentiles {
  std::int64_t count = 0;
  Interval mean;
  Interval median;
  Interval p90;
  Interval p95;
  Interval p99;
  double max = 0;
};

/// Linear between the two nearest of sorted values, as numpy does it; 0 of none.
double percentile(const std::vector<float>& sorted, double percent);

/// Values in time, by process and by block of neighbours.
using GroupedValues = std::vector<std::vector<std::vector<float>>>;  // [processes][blocks][values]
/// One percentile over all of them, each value weighing the same, with the interval of the
/// two-level bootstrap. One block in all has no interval; no values have a value of NaN.
Interval grouped_percentile(const GroupedValues& processes, double percent,
                            std::uint64_t seed = 17);

/// Of values that are not negative. Intervals are taken over histograms with steps of 1%, and are
/// rounded outwards by a step. Fewer than 5 blocks with values give none.
Percentiles percentiles(const std::vector<std::vector<float>>& blocks, std::uint64_t seed);

/// sum(numerators) / sum(denominators), where a block is a pair of these; 0 where the denominators
/// have no sum. Fewer than 5 blocks give no interval.
Interval ratio_of_sums(const std::vector<double>& numerators,
                       const std::vector<double>& denominators, std::uint64_t seed);

}  // namespace gauntlet::stats
