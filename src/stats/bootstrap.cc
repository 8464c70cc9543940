#include "stats/bootstrap.h"

#include <algorithm>

#include "core/check.h"
#include "core/random.h"
#include "stats/median.h"

namespace gauntlet::stats {
namespace {

void draw(std::span<const std::size_t> blocks_per_group, Random& random, Drawing& drawing) {
  for (DrawnGroup& place : drawing) {
    place.group = random.next_below(blocks_per_group.size());
    place.blocks.resize(blocks_per_group[place.group]);
    for (std::size_t& block : place.blocks) block = random.next_below(place.blocks.size());
  }
}

/// Moves an end of the interval away from its value by a factor; what is not negative stays so.
double widened(double value, double end, double factor) {
  if (value > 0 && end > 0) return value * std::pow(end / value, factor);
  const double moved = value + (end - value) * factor;
  return value >= 0 && end >= 0 ? std::max(moved, 0.0) : moved;
}

}  // namespace

std::vector<Interval> bootstrap(std::span<const std::size_t> blocks_per_group,
                                std::span<const double> values, const Statistics& statistics,
                                const BootstrapOptions& options) {
  check(!blocks_per_group.empty() && std::ranges::min(blocks_per_group) > 0,
        "a bootstrap needs blocks in every group");
  std::vector<Interval> intervals;
  for (const double value : values) intervals.push_back({.value = value});
  const std::size_t drawn_from =
      blocks_per_group.size() > 1 ? blocks_per_group.size() : blocks_per_group.front();
  if (drawn_from < 2) return intervals;

  Random random(options.seed);
  Drawing drawing(blocks_per_group.size());
  std::vector<double> drawn(values.size());
  std::vector<std::vector<double>> resampled(values.size());
  for (int resample = 0; resample < options.resamples; ++resample) {
    draw(blocks_per_group, random, drawing);
    statistics(drawing, drawn);
    for (std::size_t i = 0; i < drawn.size(); ++i) resampled[i].push_back(drawn[i]);
  }
  const auto count = static_cast<double>(drawn_from);
  const double factor = std::sqrt(count / (count - 1));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Interval& interval = intervals[i];
    interval.lo =
        std::min(interval.value, widened(interval.value, quantile(resampled[i], 0.025), factor));
    interval.hi =
        std::max(interval.value, widened(interval.value, quantile(resampled[i], 0.975), factor));
  }
  return intervals;
}

}  // namespace gauntlet::stats
