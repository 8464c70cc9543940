#include "stats/blocks.h"

#include <algorithm>

#include "core/check.h"
#include "stats/bootstrap.h"
#include "stats/median.h"

namespace gauntlet::stats {

Interval estimate(const std::vector<ProcessBlocks>& processes, const BlockStatistic& statistic,
                  std::uint64_t seed) {
  std::vector<std::vector<double>> groups;
  std::vector<std::size_t> sizes;
  std::vector<double> medians;
  for (const ProcessBlocks& blocks : processes) {
    if (blocks.empty()) continue;
    std::vector<double>& values = groups.emplace_back();
    for (const Block& block : blocks) values.push_back(statistic(block));
    sizes.push_back(values.size());
    medians.push_back(median(values));
  }
  check(!groups.empty(), "estimate of nothing");
  const double center = median(medians);
  check(center > 0, "times and ratios are positive");

  std::vector<double> of_group, of_groups;
  const Statistics median_of_medians = [&](const Drawing& drawing, std::span<double> out) {
    of_groups.clear();
    for (const DrawnGroup& drawn : drawing) {
      of_group.clear();
      for (const std::size_t block : drawn.blocks) of_group.push_back(groups[drawn.group][block]);
      of_groups.push_back(median(of_group));
    }
    out[0] = median(of_groups);
  };
  Interval result = bootstrap(sizes, std::vector{center}, median_of_medians, {.seed = seed})[0];
  if (medians.size() > 1) {
    for (double& value : medians) value = std::log(value);
    const Interval of_processes = student_interval(medians);
    result.lo = std::min(result.lo, std::exp(of_processes.lo));
    result.hi = std::max(result.hi, std::exp(of_processes.hi));
  }
  return result;
}

Interval estimate_ratio(const std::vector<ProcessBlocks>& processes, std::size_t from,
                        std::size_t to, std::uint64_t seed) {
  return estimate(processes, [=](const Block& block) { return block.ratio(from, to); }, seed);
}

}  // namespace gauntlet::stats
