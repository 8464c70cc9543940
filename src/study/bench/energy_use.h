// Joules per token of a layer, where the machine tells what it uses.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "study/bench/sizes.h"
#include "study/bench/workbench.h"

namespace gauntlet::study::inline bench {

struct EnergyPoint {
  std::string name;  // "decode_1", "served"
  std::int64_t batch = 0;
  double joules_per_token = 0;
  double watts = 0;
  std::int64_t tokens = 0;
};
struct EnergyUse {
  std::string source;               // "RAPL: package-0"
  std::vector<EnergyPoint> points;  // at least one

  /// What was served has no batch of its own.
  bool is_served() const { return points.front().name == "served"; }
};

/// Decoding at batch 1 and the most, or serving, for as long as counters take to show it. An error
/// where the machine does not tell.
Expected<EnergyUse> measure_energy(Workbench& bench, const Sizes& sizes, int layer);

}  // namespace gauntlet::study::inline bench
