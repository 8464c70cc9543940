#include "lab/measure/turns.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"

namespace gauntlet::lab::inline measure {
namespace {

std::vector<std::size_t> random_order(std::size_t sides, Random& random) {
  std::vector<std::size_t> order(sides);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t left = sides; left > 1; --left) {
    std::swap(order[left - 1], order[random.next_below(left)]);
  }
  return order;
}

void note(const GpuState& state, Conditions& conditions) {
  conditions.sm_clock_mhz_min = conditions.sm_clock_mhz_min == 0
                                    ? state.sm_clock_mhz
                                    : std::min(conditions.sm_clock_mhz_min, state.sm_clock_mhz);
  conditions.sm_clock_mhz_max = std::max(conditions.sm_clock_mhz_max, state.sm_clock_mhz);
  conditions.power_w_max = std::max(conditions.power_w_max, state.power_w);
  conditions.temperature_c_max = std::max(conditions.temperature_c_max, state.temperature_c);
  for (const std::string& reason : state.throttle_reasons) {
    if (std::ranges::find(conditions.throttle_reasons, reason) ==
        conditions.throttle_reasons.end()) {
      conditions.throttle_reasons.push_back(reason);
    }
  }
}

}  // namespace

Expected<std::optional<stats::Block>> take_block(std::size_t sides, Random& random,
                                                 const TakeSample& take_sample,
                                                 const ReadSensors& read_sensors,
                                                 Conditions& conditions) {
  check(sides > 0, "a block of no sides");
  stats::Block block{.ns = std::vector<std::array<double, 2>>(sides)};
  std::vector<std::size_t> order = random_order(sides, random);
  for (const int half : {0, 1}) {
    for (const std::size_t side : order) {
      const auto ns = take_sample(side, half);
      if (!ns) return ns.error();
      block.ns[side][static_cast<std::size_t>(half)] = *ns;
    }
    std::ranges::reverse(order);
  }
  if (const auto state = read_sensors()) {
    note(*state, conditions);
    if (state->thermal_slowdown) {
      ++conditions.dropped_blocks;
      return std::optional<stats::Block>();
    }
  }
  ++conditions.blocks;
  return std::optional(std::move(block));
}

}  // namespace gauntlet::lab::inline measure
