#include "server/metrics/histogram.h"

#include <algorithm>
#include <cmath>

namespace gauntlet::server::inline metrics {

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)),
      counts_(std::make_unique<std::atomic<std::int64_t>[]>(bounds_.size() + 1)) {}

void Histogram::observe(double value) {
  if (std::isnan(value)) return;
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[bucket].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::int64_t> Histogram::counts() const {
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    counts.push_back(counts_[i].load(std::memory_order_relaxed));
  }
  return counts;
}

}  // namespace gauntlet::server::inline metrics
