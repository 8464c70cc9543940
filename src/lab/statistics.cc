#include "lab/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::lab {
namespace {

constexpr int kResamples = 2000;

double quantile(std::vector<double>& values, double q) {
  const auto position = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(position),
                   values.end());
  return values[position];
}

/// The 97.5% quantile of Student's t.
double student(std::size_t degrees) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571,
                                 2.447,  2.365, 2.306, 2.262, 2.228};
  return degrees <= kTable.size() ? kTable[degrees - 1]
                                  : 1.96 + 2.65 / static_cast<double>(degrees);
}

/// 95% interval of the mean of values that are normal.
Estimate student_interval(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  const double half = student(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return {.median = mean, .lo = mean - half, .hi = mean + half};
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

double spread(const std::vector<double>& values) {
  if (values.size() < 4) return 0;
  std::vector<double> copy = values;
  const double low = quantile(copy, 0.25), high = quantile(copy, 0.75);
  return (high - low) / median(values);
}

Estimate estimate(const std::vector<ProcessBlocks>& processes, const BlockStatistic& statistic,
                  std::uint64_t seed) {
  std::vector<std::vector<double>> groups;
  std::vector<double> all;
  for (const ProcessBlocks& blocks : processes) {
    std::vector<double> values;
    for (const Block& block : blocks) values.push_back(statistic(block));
    all.insert(all.end(), values.begin(), values.end());
    if (!values.empty()) groups.push_back(std::move(values));
  }
  check(!groups.empty(), "estimate of nothing");
  const double center = median(all);
  check(center > 0, "times and ratios are positive");

  Random random(seed);
  std::vector<double> medians;
  medians.reserve(kResamples);
  std::vector<double> draw;
  for (int resample = 0; resample < kResamples; ++resample) {
    draw.clear();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto& group = groups[random.next_below(groups.size())];
      for (std::size_t i = 0; i < group.size(); ++i) {
        draw.push_back(group[random.next_below(group.size())]);
      }
    }
    const auto middle = draw.begin() + static_cast<std::ptrdiff_t>(draw.size() / 2);
    std::nth_element(draw.begin(), middle, draw.end());
    medians.push_back(*middle);
  }
  const double lo = quantile(medians, 0.025), hi = quantile(medians, 0.975);
  // Both intervals as logarithms relative to the median.
  double below = std::log(lo / center), above = std::log(hi / center);
  if (groups.size() > 1) {
    const auto count = static_cast<double>(groups.size());
    const double widen = std::sqrt(count / (count - 1));
    std::vector<double> of_processes;
    for (const auto& group : groups) of_processes.push_back(std::log(median(group) / center));
    const Estimate processes_alone = student_interval(of_processes);
    below = std::min(below * widen, processes_alone.lo);
    above = std::max(above * widen, processes_alone.hi);
  }
  // The bootstrap takes the upper of two middle values, so its interval may just miss a median
  // between them.
  return {.median = center,
          .lo = center * std::exp(std::min(below, 0.0)),
          .hi = center * std::exp(std::max(above, 0.0))};
}

double relative_half_width(const Estimate& estimate) {
  return (estimate.hi - estimate.lo) / 2 / estimate.median;
}

}  // namespace gauntlet::lab
