#include "lab/run/metrics.h"

#include <algorithm>
#include <cmath>

#include "stats/median.h"
#include "stats/percentiles.h"

namespace gauntlet::lab::inline run {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// What falls to nothing improved by any factor; records and the ratio of two runs need a number.
constexpr double kUnbounded = 1e6;

stats::Interval percentile_of(const std::vector<Measurement>& processes, std::size_t side,
                              const Metric& metric) {
  stats::GroupedValues values;
  for (const Measurement& process : processes) {
    const auto found = process.sides[side].distributions.find(metric.distribution);
    if (found != process.sides[side].distributions.end()) values.push_back(found->second);
  }
  return stats::grouped_percentile(values, metric.percent);
}

/// The median over processes of a side's named number, with its interval.
stats::Interval reading(const std::vector<Measurement>& processes, std::size_t side,
                        const std::string& name,
                        std::map<std::string, double> SideMeasurement::* from) {
  std::vector<double> values;
  for (const Measurement& process : processes) {
    const auto& named = process.sides[side].*from;
    const auto found = named.find(name);
    if (found != named.end()) values.push_back(found->second);
  }
  return values.empty() ? stats::Interval{.value = kNone} : stats::median_interval(values);
}

/// The largest error of any process. The least of them bounds it from below: how near the largest
/// comes to what is allowed varies with the inputs.
stats::Interval largest_error(const std::vector<Measurement>& processes, std::size_t side) {
  stats::Interval error{.value = 0};
  for (const Measurement& m : processes) {
    if (!m.ok) continue;
    const double own = m.sides[side].error;
    error.value = std::max(error.value, own);
    error.lo = std::isnan(error.lo) ? own : std::min(error.lo, own);
  }
  error.hi = error.value;
  return error;
}

/// Facts are read once and exact. What is observed while a side runs varies, and without an
/// interval nobody knows how much.
bool is_exact(Metric::From from) {
  return from == Metric::From::fact || from == Metric::From::error;
}

}  // namespace

void add_metrics(Result& result, const Target& target, const Knobs& knobs,
                 const std::vector<Measurement>& processes) {
  for (const Metric& metric : target.pair.metrics) {
    MetricResult values{.unit = metric.unit, .sides = {}};
    bool known = false;
    for (std::size_t side = 0; side < result.sides.size(); ++side) {
      stats::Interval value{.value = kNone};
      switch (metric.from) {
        case Metric::From::rate:
          value = stats::rate(metric.amount(knobs) * 1e9, result.sides[side].ns);
          break;
        case Metric::From::error:
          value = largest_error(processes, side);
          break;
        case Metric::From::fact:
          value = reading(processes, side, metric.name, &SideMeasurement::facts);
          break;
        case Metric::From::outcome:
          value = reading(processes, side, metric.name, &SideMeasurement::outcomes);
          break;
        case Metric::From::percentile:
          value = percentile_of(processes, side, metric);
          break;
      }
      known |= !std::isnan(value.value);
      values.sides.push_back(value);
    }
    if (known) result.metrics[metric.name] = std::move(values);
  }
}

stats::Interval metric_gain(const Result& result, const Target& target, const SidePair& sides) {
  const auto metric = result.metrics.find(target.pair.goal_metric);
  if (metric == result.metrics.end()) return {};
  const auto declared = std::ranges::find_if(
      target.pair.metrics, [&](const Metric& m) { return m.name == target.pair.goal_metric; });
  const stats::Interval& from = metric->second.sides[sides.from];
  const stats::Interval& to = metric->second.sides[sides.to];
  if (std::isnan(from.value) || std::isnan(to.value)) return {};
  const bool lower = declared->better == Metric::Better::lower;
  const stats::Interval& worse = lower ? from : to;
  const stats::Interval& better = lower ? to : from;
  if (better.value <= 0) {
    const double gain = worse.value > 0 ? kUnbounded : 1;
    return {gain, gain, gain};
  }
  if (worse.value <= 0) return {1 / kUnbounded, 1 / kUnbounded, 1 / kUnbounded};
  stats::Interval gain = stats::ratio(better, worse);
  if (gain.known()) return gain;
  if (better.known() && worse.known()) {
    // An end at 0 has no logarithm: the ends themselves.
    gain.lo = worse.lo / better.hi;
    gain.hi = better.lo > 0 ? worse.hi / better.lo : kUnbounded;
  } else if (is_exact(declared->from)) {
    gain.lo = gain.hi = gain.value;
  }
  return gain;
}

}  // namespace gauntlet::lab::inline run
