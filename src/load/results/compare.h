// Two load tests side by side: ratios with intervals, and what they say.
#pragma once
#include <string>
#include <vector>

#include "load/results/result.h"
#include "stats/change.h"

namespace gauntlet::load::inline results {

struct Comparison {
  std::string load;  // "best", or a load that both have
  std::string figure;
  stats::Interval a;
  stats::Interval b;
  stats::Interval ratio;  // b/a
  stats::Change change = stats::Change::unclear;
};

/// Goodput (or without an SLO answers per second) of the best point of each, then throughput and
/// latencies at each load that both measured. Runs of their own are independent, so their
/// intervals are combined as stats::ratio() does it, and judged by stats::change().
std::vector<Comparison> compare(const LoadResult& a, const LoadResult& b);

std::string json_text(const std::vector<Comparison>& comparisons);

}  // namespace gauntlet::load::inline results
