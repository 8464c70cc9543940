#include "study/estimates.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/speed.h"
#include "study/duel.h"
#include "study/rules.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

constexpr std::uint64_t kSeed = 0x57A7;

lab::Estimate over(double amount, const lab::Estimate& time) {
  return {.median = amount / time.median, .lo = amount / time.hi, .hi = amount / time.lo};
}

}  // namespace

json to_json(const lab::Estimate& e) { return {{"median", e.median}, {"lo", e.lo}, {"hi", e.hi}}; }

lab::Estimate estimate_from_json(const json& e) {
  return {.median = e.at("median"), .lo = e.at("lo"), .hi = e.at("hi")};
}

lab::Estimate gain_of(const std::vector<lab::Block>& blocks) {
  return lab::estimate({blocks}, [](const lab::Block& block) { return block.ratio(); }, kSeed);
}

lab::Estimate overall_gain(const json& bouts) {
  std::vector<lab::Block> all;
  const auto is_part = [](const json& bout) { return !bout.value("beside", false); };
  const double power =
      1.0 / static_cast<double>(std::count_if(bouts.begin(), bouts.end(), is_part));
  for (const json& bout : bouts) {
    if (!is_part(bout)) continue;
    const auto blocks = blocks_from_json(bout.at("ns"));
    if (all.empty()) all.resize(blocks.size(), {.baseline_ns = {1, 1}, .optimized_ns = {1, 1}});
    all.resize(std::min(all.size(), blocks.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (int s = 0; s < 2; ++s) {
        all[i].baseline_ns[s] *= std::pow(blocks[i].baseline_ns[s], power);
        all[i].optimized_ns[s] *= std::pow(blocks[i].optimized_ns[s], power);
      }
    }
  }
  return gain_of(all);
}

json figures_of(const json& bout, SideOf side) {
  const auto blocks = blocks_from_json(bout.at("ns"));
  const lab::Estimate ns = lab::estimate(
      {blocks},
      [side](const lab::Block& block) {
        const auto& own = side == SideOf::a ? block.baseline_ns : block.optimized_ns;
        return (own[0] + own[1]) / 2;
      },
      kSeed);
  const std::int64_t batch = bout.at("batch"), tokens = bout.at("tokens");
  const double steps = bout.at("name") == "prompt" ? 1 : static_cast<double>(tokens);
  const json& limit = bout.at("limits").at(side == SideOf::a ? 0 : 1);
  const lab::Estimate ms{ns.median / steps / 1e6, ns.lo / steps / 1e6, ns.hi / steps / 1e6};
  return {
      {"name", bout.at("name")},
      {"batch", batch},
      {"context", bout.at("context")},
      {"tokens", tokens},
      {"ms", to_json(ms)},
      {"tok_s", to_json(over(1e9 * static_cast<double>(batch * tokens), ns))},
      {"percent_of_limit",
       limit.is_null() ? json() : json(100 * 1e9 * limit.at("seconds").get<double>() / ns.median)},
      {"bound_by", limit.is_null() ? json() : limit.at("bound_by")},
      {"repetitions", 2 * blocks.size()}};
}

json gains_of(const json& bouts) {
  json each = json::array();
  for (const json& bout : bouts) {
    const lab::Estimate gain = gain_of(blocks_from_json(bout.at("ns")));
    each.push_back(
        {{"name", bout.at("name")}, {"ratio", to_json(gain)}, {"label", name_of(judge(gain))}});
    if (bout.value("beside", false)) each.back()["beside"] = true;
  }
  const lab::Estimate all = overall_gain(bouts);
  return {{"ratio", to_json(all)}, {"label", name_of(judge(all))}, {"workloads", std::move(each)}};
}

lab::Estimate estimate_ms(const json& times) {
  const auto interval = engine::median_interval(times.get<std::vector<double>>());
  return {.median = interval.median, .lo = interval.lo, .hi = interval.hi};
}

}  // namespace gauntlet::study
