#include "study/results/estimates.h"

#include <algorithm>
#include <cmath>

#include "stats/change.h"
#include "stats/median.h"

namespace gauntlet::study::inline results {
namespace {

/// What a duel's gain is worked out from.
struct NamedBlocks {
  const std::string& name;
  bool beside = false;
  const stats::ProcessBlocks& blocks;
};

Ratio ratio_of(const stats::ProcessBlocks& blocks) {
  const stats::Interval ratio = stats::estimate_ratio({blocks}, 0, 1);
  return {.ratio = ratio, .label = stats::gain(ratio)};
}

Ratio overall(const std::vector<NamedBlocks>& bouts) {
  stats::ProcessBlocks all;
  const double power =
      1.0 / static_cast<double>(std::ranges::count(bouts, false, &NamedBlocks::beside));
  for (const auto& [name, beside, blocks] : bouts) {
    if (beside) continue;
    if (all.empty()) all.resize(blocks.size(), {.ns = {{1, 1}, {1, 1}}});
    all.resize(std::min(all.size(), blocks.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t side = 0; side < 2; ++side) {
        for (std::size_t half = 0; half < 2; ++half) {
          all[i].ns[side][half] *= std::pow(blocks[i].ns[side][half], power);
        }
      }
    }
  }
  return ratio_of(all);
}

Gain gain_over(const std::vector<NamedBlocks>& bouts,
               const std::optional<lab::Conditions>& conditions) {
  Gain gain{.all = overall(bouts), .workloads = {}, .conditions = conditions};
  for (const auto& [name, beside, blocks] : bouts) {
    gain.workloads.push_back({.name = name, .gain = ratio_of(blocks), .beside = beside});
  }
  return gain;
}

}  // namespace

Gain gain_of(const Duel& duel) {
  std::vector<NamedBlocks> bouts;
  for (const Bout& bout : duel.bouts) bouts.push_back({bout.workload.name, false, bout.blocks});
  return gain_over(bouts, duel.conditions);
}

Gain gain_of(const ServeDuel& duel) {
  std::vector<NamedBlocks> bouts;
  for (const auto& [name, beside, blocks] : duel.metrics) bouts.push_back({name, beside, blocks});
  return gain_over(bouts, duel.conditions);
}

Figure figure_of(const Bout& bout, SideOf side) {
  const std::size_t index = side == SideOf::a ? 0 : 1;
  const stats::Interval ns =
      stats::estimate({bout.blocks}, [=](const stats::Block& block) { return block.mean(index); });
  const engine::SpeedTest& test = bout.workload.test;
  const double steps = bout.workload.is_prompt() ? 1 : static_cast<double>(test.tokens);
  const engine::SpeedLimit& limit = bout.limits[index];
  Figure figure{.name = bout.workload.name,
                .batch = test.batch,
                .context = test.context,
                .tokens = test.tokens,
                .ms = ns.times(1e-6 / steps),
                .tok_s = stats::rate(1e9 * static_cast<double>(test.all_tokens()), ns),
                .percent_of_limit = {},
                .bound_by = limit.bound_by,
                .repetitions = 2 * std::ssize(bout.blocks)};
  if (!limit.bound_by.empty()) figure.percent_of_limit = 100 * 1e9 * limit.seconds / ns.value;
  return figure;
}

EngineFigures engine_figures(const Duel& duel, SideOf side) {
  const DuelSide& own = side == SideOf::a ? duel.a : duel.b;
  EngineFigures engine{.plan = own.plan,
                       .weight_bytes = own.weight_bytes,
                       .read_from = own.read_from,
                       .figures = {},
                       .ttft_ms = {},
                       .tpot_ms = {}};
  for (const Bout& bout : duel.bouts) engine.figures.push_back(figure_of(bout, side));
  if (const Figure* prompt = engine.find("prompt")) engine.ttft_ms = prompt->ms;
  if (const Figure* decode = engine.find("decode_1")) engine.tpot_ms = decode->ms;
  return engine;
}

const Figure* EngineFigures::find(const std::string& name) const {
  const auto found = std::ranges::find(figures, name, &Figure::name);
  return found == figures.end() ? nullptr : &*found;
}

stats::Interval estimate_ms(const std::vector<double>& times) {
  return stats::median_interval(times);
}

}  // namespace gauntlet::study::inline results
