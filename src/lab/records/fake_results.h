// Results for tests, as short as a test needs them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "lab/records/result.h"

namespace gauntlet::lab::inline records {

inline stats::Interval around(double value, double relative_half_width = 0) {
  return {value, value * (1 - relative_half_width), value * (1 + relative_half_width)};
}

/// A measured pair whose optimized side takes `optimized_ns`.
inline Result pair_result(std::string id, stats::Interval speedup, Status status = Status::passed,
                          double optimized_ns = 100) {
  Result result{.id = std::move(id), .kind = "comparison", .goal = "speed", .status = status};
  result.chapter = result.id.substr(0, result.id.find(':'));
  result.sides = {
      {.name = "baseline", .role = "baseline", .ns = around(optimized_ns * speedup.value)},
      {.name = "optimized", .role = "optimized", .ns = around(optimized_ns)}};
  result.comparisons = {{.from = "baseline",
                         .to = "optimized",
                         .kind = "pair",
                         .speedup = speedup,
                         .verdict = stats::gain(speedup, 1.02)}};
  return result;
}

/// A measured lab: rungs "naive", "tiled", "async" of 1200, 400 and 200 ns and a library of 150.
inline Result ladder_result(std::string id, double relative_half_width = 0.01) {
  const auto side = [&](const char* name, const char* role, double ns) {
    return SideResult{.name = name, .role = role, .ns = around(ns, relative_half_width)};
  };
  const auto compared = [&](const char* from, const char* to, const char* kind, double speedup) {
    const stats::Interval interval = around(speedup, relative_half_width);
    return ComparisonResult{.from = from,
                            .to = to,
                            .kind = kind,
                            .speedup = interval,
                            .verdict = stats::gain(interval)};
  };
  const auto witnessed = [](ComparisonResult step, const char* name) {
    step.witness = {.name = name,
                    .meaning = "what the step is about",
                    .source = "counter",
                    .collected = true,
                    .before = 32,
                    .after = 4,
                    .moved = true,
                    .expected = "falls by at least 4x"};
    return step;
  };
  Result result{.id = std::move(id),
                .backend = BackendKind::cuda,
                .kind = "comparison",
                .chapter = "labs",
                .goal = "speed",
                .status = Status::passed};
  result.sides = {side("naive", "rung", 1200), side("tiled", "rung", 400),
                  side("async", "rung", 200), side("library", "yardstick", 150)};
  result.comparisons = {witnessed(compared("naive", "tiled", "step", 3), "sectors"),
                        witnessed(compared("tiled", "async", "step", 2), "stalls"),
                        compared("naive", "async", "total", 6),
                        compared("library", "async", "yardstick", 0.75)};
  return result;
}

}  // namespace gauntlet::lab::inline records
