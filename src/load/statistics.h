// Percentiles and rates with 95% intervals. Requests that follow each other share a queue, so they
// are resampled in blocks of neighbours, never one by one.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace gauntlet::load {

inline constexpr std::size_t kBlocks = 20;

/// A value with its interval, which is NaN where there are too few blocks to tell.
struct Figure {
  double value = 0;
  double lo = std::numeric_limits<double>::quiet_NaN();
  double hi = std::numeric_limits<double>::quiet_NaN();

  bool has_interval() const { return lo <= hi; }
};

struct Percentiles {
  std::int64_t count = 0;
  Figure mean;
  Figure median;
  Figure p90;
  Figure p95;
  Figure p99;
  double max = 0;
};

/// Linear between the two nearest of sorted values, as numpy does it; 0 of none.
double percentile(const std::vector<float>& sorted, double percent);

/// Values in blocks of neighbours in time. Intervals come from resampling whole blocks, over
/// histograms with steps of 1%, and are rounded outwards by a step; with B blocks they are widened
/// by sqrt(B/(B-1)). Fewer than 5 blocks give none.
Percentiles summarize(const std::vector<std::vector<float>>& blocks, std::uint64_t seed);

/// sum(numerators) / sum(denominators), where a block is a pair of these.
Figure ratio_of_sums(const std::vector<double>& numerators, const std::vector<double>& denominators,
                     std::uint64_t seed);

/// b/a with an interval out of theirs: distances from the values add in squares on the logarithmic
/// scale (Donner and Zou's MOVER). Without an interval where a or b has none or is not positive.
Figure ratio_of(const Figure& a, const Figure& b);

}  // namespace gauntlet::load
