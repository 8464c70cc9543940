#include "load/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::load {
namespace {

constexpr int kResamples = 400;
constexpr std::size_t kFewestBlocks = 5;
constexpr double kSmallest = 1e-6;  // seconds; what is below counts as this
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

/// The middle 95% of what resampling gave.
Figure interval(double value, std::vector<double>& low, std::vector<double>& high,
                std::size_t num_blocks) {
  const auto quantile = [](std::vector<double>& values, double q) {
    const auto at = values.begin() +
                    static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  const auto count = static_cast<double>(num_blocks);
  const double widen = std::sqrt(count / (count - 1));
  const double lo = value + (quantile(low, 0.025) - value) * widen;
  const double hi = value + (quantile(high, 0.975) - value) * widen;
  return {.value = value, .lo = std::max(0.0, std::min(lo, value)), .hi = std::max(hi, value)};
}

/// A drawing of blocks: their histograms and sums added up.
class Drawing {
 public:
  explicit Drawing(const std::vector<BlockSums>& blocks) : blocks_(blocks), bins_(kBins) {
    for (const BlockSums& block : blocks) {
      for (std::size_t bin = 0; bin < kBins; ++bin) {
        if (block.bins[bin] == 0) continue;
        first_ = std::min(first_, bin);
        last_ = std::max(last_, bin);
      }
    }
  }

  void draw(Random& random) {
    std::ranges::fill(bins_, 0.0);
    sum_ = count_ = 0;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const BlockSums& block = blocks_[random.next_below(blocks_.size())];
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
  Random random(seed);
  std::vector<double> means;
  std::array<std::vector<double>, kPercents.size()> low;
  std::array<std::vector<double>, kPercents.size()> high;
  Drawing drawing(blocks);
  for (int i = 0; i < kResamples; ++i) {
    drawing.draw(random);
    means.push_back(drawing.mean());
    for (std::size_t p = 0; p < kPercents.size(); ++p) {
      const std::size_t bin = drawing.percentile_bin(kPercents[p]);
      low[p].push_back(lower_edge(bin));
      high[p].push_back(lower_edge(bin + 1));
    }
  }
  std::vector<double> copy = means;
  out.mean = interval(out.mean.value, means, copy, blocks.size());
  const std::array figures = {&out.median, &out.p90, &out.p95, &out.p99};
  for (std::size_t p = 0; p < kPercents.size(); ++p) {
    *figures[p] = interval(figures[p]->value, low[p], high[p], blocks.size());
  }
}

}  // namespace

double percentile(const std::vector<float>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

Percentiles summarize(const std::vector<std::vector<float>>& blocks, std::uint64_t seed) {
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

Figure ratio_of_sums(const std::vector<double>& numerators, const std::vector<double>& denominators,
                     std::uint64_t seed) {
  check(numerators.size() == denominators.size(), "a block is a pair");
  double above = 0, below = 0;
  for (const double value : numerators) above += value;
  for (const double value : denominators) below += value;
  if (!(below > 0)) return {};
  Figure figure{.value = above / below};
  if (numerators.size() < kFewestBlocks) return figure;
  Random random(seed);
  std::vector<double> ratios;
  while (std::ssize(ratios) < kResamples) {
    double drawn_above = 0, drawn_below = 0;
    for (std::size_t i = 0; i < numerators.size(); ++i) {
      const auto block = random.next_below(numerators.size());
      drawn_above += numerators[block];
      drawn_below += denominators[block];
    }
    ratios.push_back(drawn_below > 0 ? drawn_above / drawn_below : figure.value);
  }
  std::vector<double> copy = ratios;
  return interval(figure.value, ratios, copy, numerators.size());
}

Figure ratio_of(const Figure& a, const Figure& b) {
  if (!(a.value > 0) || !(b.value > 0)) return {};
  Figure ratio{.value = b.value / a.value};
  if (!a.has_interval() || !b.has_interval() || !(a.lo > 0) || !(b.lo > 0)) return ratio;
  const double down = std::hypot(std::log(b.value / b.lo), std::log(a.hi / a.value));
  const double up = std::hypot(std::log(b.hi / b.value), std::log(a.value / a.lo));
  ratio.lo = ratio.value * std::exp(-down);
  ratio.hi = ratio.value * std::exp(up);
  return ratio;
}

}  // namespace gauntlet::load
