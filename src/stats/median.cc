#include "stats/median.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace gauntlet::stats {
namespace {

/// The 97.5% quantile of Student's t.
double student(std::size_t degrees) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571,
                                 2.447,  2.365, 2.306, 2.262, 2.228};
  return degrees <= kTable.size() ? kTable[degrees - 1]
                                  : 1.96 + 2.65 / static_cast<double>(degrees);
}

/// `share`: of the variance of one value, that of what is asked for.
Interval around_mean(const std::vector<double>& values, double share) {
  check(values.size() > 1, "Student's interval needs two values");
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  const double half = student(values.size() - 1) * std::sqrt(squares / (count - 1) * share);
  return {.value = mean, .lo = mean - half, .hi = mean + half};
}

}  // namespace

double median(std::vector<double> values) {
  check(!values.empty(), "median of nothing");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double above = *middle;
  return (above + *std::max_element(values.begin(), middle)) / 2;
}

double quantile(std::vector<double>& values, double q) {
  check(!values.empty(), "quantile of nothing");
  const auto position =
      static_cast<std::size_t>(std::lround(q * static_cast<double>(values.size() - 1)));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(position),
                   values.end());
  return values[position];
}

double spread(const std::vector<double>& values) {
  if (values.size() < 4) return 0;
  std::vector<double> copy = values;
  const double low = quantile(copy, 0.25), high = quantile(copy, 0.75);
  return (high - low) / median(values);
}

Interval median_interval(std::vector<double> values) {
  const double center = median(values);
  const std::size_t count = values.size();
  if (count < 2) return {.value = center};
  std::ranges::sort(values);
  // The median lies outside [x(k+1), x(n-k)] when at most k of n fall on one side of it.
  std::size_t skip = 0;
  double chance = std::pow(0.5, static_cast<double>(count)), below = chance;
  while (true) {
    chance *= static_cast<double>(count - skip) / static_cast<double>(skip + 1);
    if (below + chance > 0.025 || 2 * (skip + 1) >= count) break;
    below += chance;
    ++skip;
  }
  return {.value = center, .lo = values[skip], .hi = values[count - 1 - skip]};
}

Interval student_interval(const std::vector<double>& values) {
  return around_mean(values, 1 / static_cast<double>(values.size()));
}

Interval prediction_interval(const std::vector<double>& values) {
  return around_mean(values, 1 + 1 / static_cast<double>(values.size()));
}

}  // namespace gauntlet::stats
