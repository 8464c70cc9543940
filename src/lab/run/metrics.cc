#include "lab/run/metrics.h"

#include <algorithm>
#include <cmath>

#include "stats/bootstrap.h"

namespace gauntlet::lab::inline run {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// Values that follow each other share a queue: they are drawn in blocks of neighbours.
constexpr std::size_t kBlocksPerProcess = 20;

/// Linear between the two nearest.
double percentile(std::vector<float>& values, double percent) {
  if (values.empty()) return kNone;
  const double at = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), nth, values.end());
  const double low = *nth;
  if (below + 1 >= values.size()) return low;
  const double high = *std::min_element(nth + 1, values.end());
  return low + (high - low) * (at - static_cast<double>(below));
}

stats::Interval percentile_of(const std::vector<Measurement>& processes, std::size_t side,
                              const Metric& metric) {
  std::vector<std::vector<std::vector<float>>> blocks;  // [processes][blocks]
  std::vector<std::size_t> sizes;
  std::vector<float> all;
  for (const Measurement& process : processes) {
    const auto found = process.sides[side].distributions.find(metric.distribution);
    if (found == process.sides[side].distributions.end() || found->second.empty()) continue;
    const std::vector<float>& values = found->second;
    all.insert(all.end(), values.begin(), values.end());
    const std::size_t count = std::min(kBlocksPerProcess, values.size());
    auto& of_process = blocks.emplace_back();
    for (std::size_t b = 0; b < count; ++b) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(values.size() * b / count);
      const auto end =
          values.begin() + static_cast<std::ptrdiff_t>(values.size() * (b + 1) / count);
      of_process.emplace_back(begin, end);
    }
    sizes.push_back(count);
  }
  if (all.empty()) return {.value = kNone};
  std::vector<float> drawn;
  const auto statistic = [&](const stats::Drawing& drawing, std::span<double> out) {
    drawn.clear();
    for (const stats::DrawnGroup& group : drawing) {
      for (const std::size_t block : group.blocks) {
        const auto& values = blocks[group.group][block];
        drawn.insert(drawn.end(), values.begin(), values.end());
      }
    }
    out[0] = percentile(drawn, metric.percent);
  };
  const std::vector value = {percentile(all, metric.percent)};
  return stats::bootstrap(sizes, value, statistic, {.resamples = 400})[0];
}

/// The median over processes of a side's named number, and all of them as its interval.
stats::Interval reading(const std::vector<Measurement>& processes, std::size_t side,
                        const std::string& name,
                        std::map<std::string, double> SideMeasurement::* from) {
  std::vector<double> values;
  for (const Measurement& process : processes) {
    const auto& named = process.sides[side].*from;
    const auto found = named.find(name);
    if (found != named.end()) values.push_back(found->second);
  }
  if (values.empty()) return {.value = kNone};
  std::ranges::sort(values);
  return {.value = values[values.size() / 2], .lo = values.front(), .hi = values.back()};
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
          value.value = 0;
          for (const Measurement& m : processes) {
            value.value = std::max(value.value, m.sides[side].error);
          }
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
    const double gain = worse.value > 0 ? INFINITY : 1;
    return {gain, gain, gain};
  }
  // What was read once has no interval of its own.
  stats::Interval gain = stats::ratio(better, worse);
  if (!gain.known()) gain.lo = gain.hi = gain.value;
  return gain;
}

}  // namespace gauntlet::lab::inline run
