#include "lab/records/result_v1.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/text/json_fields.h"
#include "stats/interval_json.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

// Version 1 kept no verdict; this was the lowest bar a pair could set.
constexpr double kBar = 1.02;

SideResult side_at(const json& result, const char* name) {
  const json& side = result.at(name);
  return {.name = name,
          .role = name,
          .ns = {.value = number_at(side, "median_ns"),
                 .lo = number_at(side, "lo_ns"),
                 .hi = number_at(side, "hi_ns")},
          .spread = number_at(side, "spread"),
          .samples = integer_at(side, "samples"),
          .gb_per_s = number_at(side, "gb_per_s"),
          .gflop_per_s = number_at(side, "gflop_per_s"),
          .ceiling_percent = number_at(side, "ceiling_percent")};
}

WitnessResult witness_at(const json& result) {
  const json& witness = object_at(result, "witness");
  const bool collected = flag_at(witness, "collected");
  return {.name = string_at(witness, "name"),
          .meaning = string_at(witness, "meaning"),
          .source = string_at(witness, "source"),
          .collected = collected,
          .why_not = string_at(witness, "why_not"),
          .before = collected ? number_at(witness, "baseline") : 0,
          .after = collected ? number_at(witness, "optimized") : 0,
          .moved = flag_at(witness, "moved"),
          .expected = string_at(witness, "expected")};
}

std::vector<double> values_of(const json& metric) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return {number_at(metric, "baseline", kNone), number_at(metric, "optimized", kNone)};
}

}  // namespace

void read_sides_v1(const json& from, Result& result) {
  // All elements that a check of version 1 saw, it recomputed.
  const json& verification = object_at(from, "verification");
  const double checked_percent = number_at(verification, "checked_percent", 100);
  result.verification = {.max_error = number_at(verification, "max_error"),
                         .bound = number_at(verification, "bound"),
                         .checks = integer_at(verification, "checks"),
                         .recomputed_percent = checked_percent,
                         .seen_percent = checked_percent};
  const auto speedup = from.find("speedup");
  if (speedup == from.end() || speedup->is_null()) return;
  result.sides = {side_at(from, "baseline"), side_at(from, "optimized")};
  const stats::Interval interval = stats::interval_from_json(*speedup);
  result.comparisons = {{.from = "baseline",
                         .to = "optimized",
                         .kind = "pair",
                         .speedup = interval,
                         .verdict = stats::gain(interval, kBar),
                         .witness = witness_at(from)}};
  for (const auto& [name, metric] : object_at(from, "metrics").items()) {
    MetricResult& read = result.metrics[name];
    read.unit = string_at(metric, "unit");
    for (const double value : values_of(metric)) read.sides.push_back({.value = value});
  }
  for (const auto& [name, counter] : object_at(from, "counters").items()) {
    result.counters[name] = values_of(counter);
  }
}

}  // namespace gauntlet::lab::inline records
