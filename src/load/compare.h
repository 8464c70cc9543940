// Two load tests side by side: ratios with intervals.
#pragma once
#include <string>
#include <vector>

#include "load/result.h"

namespace gauntlet::load {

struct Comparison {
  std::string load;  // "best", or a load that both have
  std::string figure;
  Figure a;
  Figure b;
  Figure ratio;  // b/a
};

/// Goodput (or without an SLO answers per second) of the best point of each, then throughput and
/// latencies at each load that both measured. Runs of their own are independent, so their
/// intervals are combined as ratio_of() does it.
std::vector<Comparison> compare(const LoadResult& a, const LoadResult& b);

std::string json_text(const std::vector<Comparison>& comparisons);

}  // namespace gauntlet::load
