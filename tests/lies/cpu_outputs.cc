// Sides on a CPU that leave something wrong behind, and honest ones beside them.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "tests/lies/lie.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies {
namespace {

lab::Side honest(const Params& p, const lab::Cpu&) {
  return [p] { scale(p); };
}

lab::Side wrong_result(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    p.out[p.count - 1] += 1.0f;
  };
}

lab::Side mutates_input(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    const_cast<float*>(p.in)[p.count / 2] = 0.25f;
  };
}

lab::Side writes_past_output(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    p.out[p.count] = 1.0f;
  };
}

lab::Side leaves_unwritten(const Params& p, const lab::Cpu&) {
  return [p] { scale({.in = p.in, .out = p.out, .count = p.count / 4 * 3}); };
}

lab::Side returns_nan(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    p.out[p.count / 2] = std::numeric_limits<float>::quiet_NaN();
  };
}

lab::Side right_only_first(const Params& p, const lab::Cpu&) {
  const auto first = std::make_shared<std::optional<float>>();
  return [p, first] {
    if (!*first) *first = p.in[0];
    if (p.in[0] == **first) {
      scale(p);
    } else {
      std::fill_n(p.out, p.count, 0.0f);
    }
  };
}

template <int passes>
lab::Side passes_over(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, passes); };
}

lab::Side passes_as_before(const Params& p, const lab::Cpu&) {
  return {[p] { scale(p); }, {{"passes", kSlowPasses}}};
}
lab::Side slow_passes(const Params& p, const lab::Cpu&) {
  return {[p] { scale(p, kSlowPasses); }, {{"passes", kSlowPasses}}};
}

}  // namespace

lab::Side cpu_slow(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, kSlowPasses); };
}

std::vector<CpuLie<Params>> cpu_output_lies() {
  return {{"honest", honest},
          {"equal_sides", cpu_slow},
          {"wrong_result", wrong_result},
          {"mutates_input", mutates_input},
          {"writes_past_output", writes_past_output},
          {"leaves_unwritten", leaves_unwritten},
          {"returns_nan", returns_nan},
          {"right_only_first", right_only_first},
          {"witness_still", passes_as_before, slow_passes},
          {"witness_missing", honest},
          {"inflated_cost", honest},
          {"many_passes", passes_over<kManyPasses>, passes_over<4 * kManyPasses>},
          {"inflated_passes", passes_over<kManyPasses>, passes_over<4 * kManyPasses>},
          {"honest_with_dear_checks", honest}};
}

}  // namespace gauntlet::lies
