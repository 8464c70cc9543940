#include "stats/percentiles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "stats/bootstrap.h"

namespace gauntlet::stats {
namespace {

// A drawing adds up histograms of thousands of bins, and a run has a dozen percentiles to give.
constexpr int kResamples = 400;
constexpr std::size_t kFewestBlocks = 5;
constexpr double kSmallest = 1e-6;  // seconds, where these are times; what is below counts as this
constexpr double kStep = 1.01;
constexpr std::size_t kBins = 2200;  // up to 3,000 s
constexpr std::array kPercents = {50.0, 90.0, 95.0, 99.0};

std::size_t bin_of(float value) {
  const double bin = std::log(std::max<double>(value, kSmallest) / kSmallest) / std::log(kStep);
  return std::min(kBins - 1, static_cast<std::size_t>(bin));
}
double lower_edge(std::size_t bin) { return kSmallest * std::pow(kStep, static_cast<double>(bin)); }

struct BlockSums {
  std::vector<std::uint32_t> bins = std::vector<std::uint32_t>(kBins);
  double sum = 0;
  double count = 0;
};

/// Blocks drawn: their histograms and sums added up.
class DrawnSums {
 public:
  explicit DrawnSums(const std::vector<BlockSums>& blocks) : blocks_(blocks), bins_(kBins) {
    for (const BlockSums& block : blocks) {
      for (std::size_t bin = 0; bin < kBins; ++bin) {
        if (block.bins[bin] == 0) continue;
        first_ = std::min(first_, bin);
        last_ = std::max(last_, bin);
      }
    }
  }

  void add_up(const std::vector<std::size_t>& drawn) {
    std::ranges::fill(bins_, 0.0);
    sum_ = count_ = 0;
    for (const std::size_t index : drawn) {
      const BlockSums& block = blocks_[index];
      for (std::size_t bin = first_; bin <= last_; ++bin) bins_[bin] += block.bins[bin];
      sum_ += block.sum;
      count_ += block.count;
    }
  }
  double mean() const { return sum_ / count_; }
  std::size_t percentile_bin(double percent) const {
    double seen = 0;
    for (std::size_t bin = first_; bin < last_; ++bin) {
      seen += bins_[bin];
      if (seen > 0 && seen >= count_ * percent / 100) return bin;
    }
    return last_;
  }

 private:
  const std::vector<BlockSums>& blocks_;
  std::vector<double> bins_;
  std::size_t first_ = kBins - 1;  // that any block has
  std::size_t last_ = 0;
  double sum_ = 0;
  double count_ = 0;
};

void add_intervals(const std::vector<BlockSums>& blocks, std::uint64_t seed, Percentiles& out) {
  const std::array of_percents = {&out.median, &out.p90, &out.p95, &out.p99};
  // The mean, then of each percentile the lower and the upper edge of its bin.
  std::vector<double> values = {out.mean.value};
  for (const Interval* one : of_percents) values.insert(values.end(), 2, one->value);
  DrawnSums sums(blocks);
  const Statistics statistics = [&](const Drawing& drawing, std::span<double> drawn) {
    sums.add_up(drawing.front().blocks);
    drawn[0] = sums.mean();
    for (std::size_t p = 0; p < kPercents.size(); ++p) {
      const std::size_t bin = sums.percentile_bin(kPercents[p]);
      drawn[1 + 2 * p] = lower_edge(bin);
      drawn[2 + 2 * p] = lower_edge(bin + 1);
    }
  };
  const std::array group = {blocks.size()};
  const auto intervals =
      bootstrap(group, values, statistics, {.resamples = kResamples, .seed = seed});
  out.mean = intervals[0];
  for (std::size_t p = 0; p < kPercents.size(); ++p) {
    of_percents[p]->lo = intervals[1 + 2 * p].lo;
    of_percents[p]->hi = intervals[2 + 2 * p].hi;
  }
}

/// All values in order, each with the block it is of, so that a drawing is a walk over weights.
struct SortedValues {
  std::vector<std::pair<float, std::size_t>> values;
  std::vector<std::size_t> sizes;  // of the blocks

  double percentile(const std::vector<std::uint32_t>& weights, double percent) const {
    std::uint64_t count = 0;
    for (std::size_t block = 0; block < sizes.size(); ++block) {
      count += std::uint64_t{weights[block]} * sizes[block];
    }
    const double at = percent / 100 * static_cast<double>(count - 1);
    const auto below = static_cast<std::uint64_t>(at);
    const double part = at - static_cast<double>(below);
    std::uint64_t seen = 0;
    double low = 0;
    bool found = false;
    for (const auto& [value, block] : values) {
      seen += weights[block];
      if (!found && seen > below) {
        low = value;
        found = true;
      }
      if (found && (part == 0 || seen > below + 1)) return low + (value - low) * part;
    }
    return low;
  }
};

}  // namespace

Interval grouped_percentile(const GroupedValues& processes, double percent, std::uint64_t seed) {
  SortedValues sorted;
  std::vector<std::size_t> blocks_of, first_of;  // by process that has values
  for (const auto& blocks : processes) {
    const std::size_t first = sorted.sizes.size();
    for (const auto& block : blocks) {
      if (block.empty()) continue;
      for (const float value : block) sorted.values.emplace_back(value, sorted.sizes.size());
      sorted.sizes.push_back(block.size());
    }
    if (sorted.sizes.size() == first) continue;
    first_of.push_back(first);
    blocks_of.push_back(sorted.sizes.size() - first);
  }
  if (sorted.values.empty()) return {.value = std::numeric_limits<double>::quiet_NaN()};
  std::ranges::sort(sorted.values);
  std::vector<std::uint32_t> weights(sorted.sizes.size(), 1);
  const std::array value = {sorted.percentile(weights, percent)};
  const Statistics statistics = [&](const Drawing& drawing, std::span<double> drawn) {
    std::ranges::fill(weights, 0);
    for (const DrawnGroup& group : drawing) {
      for (const std::size_t block : group.blocks) ++weights[first_of[group.group] + block];
    }
    drawn[0] = sorted.percentile(weights, percent);
  };
  return bootstrap(blocks_of, value, statistics, {.resamples = kResamples, .seed = seed})[0];
}

double percentile(const std::vector<float>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

Percentiles percentiles(const std::vector<std::vector<float>>& blocks, std::uint64_t seed) {
  std::vector<float> all;
  std::vector<BlockSums> sums;
  for (const auto& block : blocks) {
    if (block.empty()) continue;
    BlockSums& one = sums.emplace_back();
    for (const float value : block) {
      ++one.bins[bin_of(value)];
      one.sum += value;
    }
    one.count = static_cast<double>(block.size());
    all.insert(all.end(), block.begin(), block.end());
  }
  Percentiles out{.count = std::ssize(all)};
  if (all.empty()) return out;
  std::ranges::sort(all);
  double sum = 0;
  for (const BlockSums& block : sums) sum += block.sum;
  out.mean.value = sum / static_cast<double>(all.size());
  out.median.value = percentile(all, 50);
  out.p90.value = percentile(all, 90);
  out.p95.value = percentile(all, 95);
  out.p99.value = percentile(all, 99);
  out.max = all.back();
  if (sums.size() >= kFewestBlocks) add_intervals(sums, seed, out);
  return out;
}

Interval ratio_of_sums(const std::vector<double>& numerators,
                       const std::vector<double>& denominators, std::uint64_t seed) {
  check(numerators.size() == denominators.size(), "a block is a pair");
  const double below = std::accumulate(denominators.begin(), denominators.end(), 0.0);
  if (!(below > 0)) return {};
  const double ratio = std::accumulate(numerators.begin(), numerators.end(), 0.0) / below;
  if (numerators.size() < kFewestBlocks) return {.value = ratio};
  const Statistics statistics = [&](const Drawing& drawing, std::span<double> drawn) {
    double drawn_above = 0, drawn_below = 0;
    for (const std::size_t block : drawing.front().blocks) {
      drawn_above += numerators[block];
      drawn_below += denominators[block];
    }
    drawn[0] = drawn_below > 0 ? drawn_above / drawn_below : ratio;
  };
  const std::array group = {numerators.size()};
  const std::array values = {ratio};
  return bootstrap(group, values, statistics, {.resamples = kResamples, .seed = seed})[0];
}

}  // namespace gauntlet::stats
