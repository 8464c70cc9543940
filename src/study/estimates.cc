#include "study/estimates.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stats/change.h"
#include "stats/interval_json.h"
#include "stats/median.h"
#include "study/duel.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

json ratio_json(const stats::Interval& ratio) {
  return {{"ratio", stats::to_json(ratio)}, {"label", stats::name_of(stats::gain(ratio))}};
}

}  // namespace

stats::Interval gain_of(const stats::ProcessBlocks& blocks) {
  return stats::estimate_ratio({blocks}, 0, 1);
}

stats::Interval overall_gain(const json& bouts) {
  stats::ProcessBlocks all;
  const auto is_part = [](const json& bout) { return !bout.value("beside", false); };
  const double power =
      1.0 / static_cast<double>(std::count_if(bouts.begin(), bouts.end(), is_part));
  for (const json& bout : bouts) {
    if (!is_part(bout)) continue;
    const auto blocks = blocks_from_json(bout.at("ns"));
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
  return gain_of(all);
}

json figures_of(const json& bout, SideOf side) {
  const auto blocks = blocks_from_json(bout.at("ns"));
  const std::size_t index = side == SideOf::a ? 0 : 1;
  const stats::Interval ns =
      stats::estimate({blocks}, [=](const stats::Block& block) { return block.mean(index); });
  const std::int64_t batch = bout.at("batch"), tokens = bout.at("tokens");
  const double steps = bout.at("name") == "prompt" ? 1 : static_cast<double>(tokens);
  const json& limit = bout.at("limits").at(index);
  return {
      {"name", bout.at("name")},
      {"batch", batch},
      {"context", bout.at("context")},
      {"tokens", tokens},
      {"ms", stats::to_json(ns.times(1e-6 / steps))},
      {"tok_s", stats::to_json(stats::rate(1e9 * static_cast<double>(batch * tokens), ns))},
      {"percent_of_limit",
       limit.is_null() ? json() : json(100 * 1e9 * limit.at("seconds").get<double>() / ns.value)},
      {"bound_by", limit.is_null() ? json() : limit.at("bound_by")},
      {"repetitions", 2 * blocks.size()}};
}

json gains_of(const json& duel) {
  const json& bouts = duel.at("bouts");
  json each = json::array();
  for (const json& bout : bouts) {
    each.push_back(ratio_json(gain_of(blocks_from_json(bout.at("ns")))));
    each.back()["name"] = bout.at("name");
    if (bout.value("beside", false)) each.back()["beside"] = true;
  }
  json gains = ratio_json(overall_gain(bouts));
  gains["workloads"] = std::move(each);
  gains["conditions"] = duel.value("conditions", json());
  return gains;
}

stats::Interval estimate_ms(const json& times) {
  return stats::median_interval(times.get<std::vector<double>>());
}

}  // namespace gauntlet::study
