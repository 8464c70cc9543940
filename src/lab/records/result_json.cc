#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/text/json_fields.h"
#include "lab/records/conditions_json.h"
#include "lab/records/result.h"
#include "lab/records/result_v1.h"
#include "stats/interval_json.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

json side_to_json(const SideResult& side) {
  return {{"name", side.name},
          {"role", side.role},
          {"ns", stats::to_json(side.ns)},
          {"spread", side.spread},
          {"samples", side.samples},
          {"gb_per_s", side.gb_per_s},
          {"gflop_per_s", side.gflop_per_s},
          {"ceiling_percent", side.ceiling_percent}};
}

SideResult side_from_json(const json& side) {
  return {.name = side.at("name").get<std::string>(),
          .role = string_at(side, "role"),
          .ns = stats::interval_from_json(side.at("ns")),
          .spread = number_at(side, "spread"),
          .samples = integer_at(side, "samples"),
          .gb_per_s = number_at(side, "gb_per_s"),
          .gflop_per_s = number_at(side, "gflop_per_s"),
          .ceiling_percent = number_at(side, "ceiling_percent")};
}

json witness_to_json(const WitnessResult& witness) {
  if (witness.source.empty()) return nullptr;
  const auto when_collected = [&](double value) {
    return witness.collected ? json(value) : json();
  };
  return {{"name", witness.name},
          {"meaning", witness.meaning},
          {"source", witness.source},
          {"collected", witness.collected},
          {"why_not", witness.why_not},
          {"before", when_collected(witness.before)},
          {"after", when_collected(witness.after)},
          {"moved", witness.moved},
          {"expected", witness.expected}};
}

WitnessResult witness_at(const json& comparison) {
  const auto found = comparison.find("witness");
  if (found == comparison.end() || found->is_null()) return {};
  const bool collected = flag_at(*found, "collected");
  return {.name = string_at(*found, "name"),
          .meaning = string_at(*found, "meaning"),
          .source = string_at(*found, "source"),
          .collected = collected,
          .why_not = string_at(*found, "why_not"),
          .before = collected ? number_at(*found, "before") : 0,
          .after = collected ? number_at(*found, "after") : 0,
          .moved = flag_at(*found, "moved"),
          .expected = string_at(*found, "expected")};
}

json comparison_to_json(const ComparisonResult& comparison) {
  return {{"from", comparison.from},
          {"to", comparison.to},
          {"kind", comparison.kind},
          {"speedup", stats::to_json(comparison.speedup)},
          {"gain", comparison.gain.value > 0 ? stats::to_json(comparison.gain) : json()},
          {"verdict", stats::name_of(comparison.verdict)},
          {"witness", witness_to_json(comparison.witness)}};
}

stats::Interval gain_at(const json& comparison) {
  const auto gain = comparison.find("gain");
  if (gain == comparison.end() || gain->is_null()) return {};
  return stats::interval_from_json(*gain);
}

stats::Gain verdict_at(const json& comparison) {
  const auto name = comparison.at("verdict").get<std::string>();
  for (const stats::Gain gain : {stats::Gain::gain, stats::Gain::no_gain, stats::Gain::loss}) {
    if (name == stats::name_of(gain)) return gain;
  }
  fail("unknown verdict '" + name + "' in a result");
}

ComparisonResult comparison_from_json(const json& comparison) {
  return {.from = comparison.at("from").get<std::string>(),
          .to = comparison.at("to").get<std::string>(),
          .kind = comparison.at("kind").get<std::string>(),
          .speedup = stats::interval_from_json(comparison.at("speedup")),
          .gain = gain_at(comparison),
          .verdict = verdict_at(comparison),
          .witness = witness_at(comparison)};
}

json verification_to_json(const VerificationResult& verification) {
  return {{"max_error", verification.max_error},
          {"bound", verification.bound},
          {"checks", verification.checks},
          {"timed_checks", verification.timed_checks},
          {"recomputed_percent", verification.recomputed_percent},
          {"seen_percent", verification.seen_percent}};
}

VerificationResult verification_at(const json& result) {
  const json& verification = object_at(result, "verification");
  return {.max_error = number_at(verification, "max_error"),
          .bound = number_at(verification, "bound"),
          .checks = integer_at(verification, "checks"),
          .timed_checks = integer_at(verification, "timed_checks"),
          .recomputed_percent = number_at(verification, "recomputed_percent", 100),
          .seen_percent = number_at(verification, "seen_percent", 100)};
}

json metrics_to_json(const std::map<std::string, MetricResult>& metrics) {
  json out = json::object();
  for (const auto& [name, metric] : metrics) {
    json sides = json::array();
    for (const stats::Interval& value : metric.sides) sides.push_back(stats::to_json(value));
    out[name] = {{"unit", metric.unit}, {"sides", std::move(sides)}};
  }
  return out;
}

std::map<std::string, MetricResult> metrics_at(const json& result) {
  std::map<std::string, MetricResult> metrics;
  for (const auto& [name, metric] : object_at(result, "metrics").items()) {
    MetricResult& read = metrics[name];
    read.unit = string_at(metric, "unit");
    for (const json& value : metric.at("sides")) {
      read.sides.push_back(stats::interval_from_json(value));
    }
  }
  return metrics;
}

std::map<std::string, std::vector<double>> counters_at(const json& result) {
  std::map<std::string, std::vector<double>> counters;
  for (const auto& [name, sides] : object_at(result, "counters").items()) {
    std::vector<double>& read = counters[name];
    for (const json& value : sides) {
      read.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                     : value.get<double>());
    }
  }
  return counters;
}

json ranks_to_json(const RankSetup& ranks) {
  if (ranks.count == 0) return nullptr;
  return {{"count", ranks.count}, {"transport", ranks.transport}};
}

RankSetup ranks_at(const json& result) {
  const json& ranks = object_at(result, "ranks");
  return {.count = small_at(ranks, "count"), .transport = string_at(ranks, "transport")};
}

BackendKind backend_at(const json& result) {
  const auto name = result.at("backend").get<std::string>();
  const auto backend = backend_from(name);
  check(backend.has_value(), "unknown backend '" + name + "' in a result");
  return *backend;
}

Status status_at(const json& result) {
  const auto name = result.at("status").get<std::string>();
  const auto status = status_from(name);
  check(status.has_value(), "unknown status '" + name + "' in a result");
  return *status;
}

void read_sides(const json& from, Result& result) {
  for (const json& side : from.value("sides", json::array())) {
    result.sides.push_back(side_from_json(side));
  }
  for (const json& comparison : from.value("comparisons", json::array())) {
    result.comparisons.push_back(comparison_from_json(comparison));
  }
  for (const json& side : from.value("absent", json::array())) {
    result.absent.push_back({.name = side.at("name").get<std::string>(),
                             .reason = side.at("reason").get<std::string>()});
  }
  result.verification = verification_at(from);
  result.metrics = metrics_at(from);
  result.counters = counters_at(from);
}

/// What readers of a Result rely on; a file that breaks it is refused.
void check_integrity(const Result& result) {
  for (const ComparisonResult& comparison : result.comparisons) {
    result.side(comparison.from);
    result.side(comparison.to);
  }
  const std::size_t num_sides = result.sides.size();
  for (const auto& [name, metric] : result.metrics) {
    check(metric.sides.size() == num_sides, "metric '" + name + "' does not have a value per side");
  }
  for (const auto& [name, values] : result.counters) {
    check(values.size() == num_sides, "counter '" + name + "' does not have a value per side");
  }
}

}  // namespace

json to_json(const Conditions& conditions) {
  return {{"processes", conditions.processes},
          {"blocks", conditions.blocks},
          {"dropped_blocks", conditions.dropped_blocks},
          {"sm_clock_mhz_min", conditions.sm_clock_mhz_min},
          {"sm_clock_mhz_max", conditions.sm_clock_mhz_max},
          {"power_w_max", conditions.power_w_max},
          {"temperature_c_max", conditions.temperature_c_max},
          {"throttle_reasons", conditions.throttle_reasons},
          {"cold", conditions.cold}};
}

Conditions conditions_from_json(const json& conditions) {
  return {.processes = small_at(conditions, "processes"),
          .blocks = small_at(conditions, "blocks"),
          .dropped_blocks = small_at(conditions, "dropped_blocks"),
          .sm_clock_mhz_min = number_at(conditions, "sm_clock_mhz_min"),
          .sm_clock_mhz_max = number_at(conditions, "sm_clock_mhz_max"),
          .power_w_max = number_at(conditions, "power_w_max"),
          .temperature_c_max = number_at(conditions, "temperature_c_max"),
          .throttle_reasons = strings_at(conditions, "throttle_reasons"),
          .cold = flag_at(conditions, "cold")};
}

json to_json(const Result& result) {
  json sides = json::array(), comparisons = json::array(), absent = json::array();
  for (const SideResult& side : result.sides) sides.push_back(side_to_json(side));
  for (const ComparisonResult& comparison : result.comparisons) {
    comparisons.push_back(comparison_to_json(comparison));
  }
  for (const AbsentSide& side : result.absent) {
    absent.push_back({{"name", side.name}, {"reason", side.reason}});
  }
  return {{"id", result.id},
          {"backend", name_of(result.backend)},
          {"ranks", ranks_to_json(result.ranks)},
          {"kind", result.kind},
          {"chapter", result.chapter},
          {"technique", result.technique},
          {"title", result.title},
          {"claim", result.claim},
          {"goal", result.goal},
          {"goal_metric", result.goal_metric},
          {"knobs", result.knobs},
          {"sweep_key", result.sweep_key},
          {"status", name_of(result.status)},
          {"reason", result.reason},
          {"notes", result.notes},
          {"log", result.log},
          {"sides", std::move(sides)},
          {"comparisons", std::move(comparisons)},
          {"absent", std::move(absent)},
          {"bound_by", result.bound_by},
          {"intensity", result.intensity},
          {"verification", verification_to_json(result.verification)},
          {"metrics", metrics_to_json(result.metrics)},
          {"counters", result.counters},
          {"conditions", to_json(result.conditions)},
          {"seconds", result.seconds}};
}

Result result_from_json(const json& from, int version) {
  Result result{.id = from.at("id").get<std::string>(),
                .backend = backend_at(from),
                .ranks = ranks_at(from),
                .kind = string_at(from, "kind"),
                .chapter = string_at(from, "chapter"),
                .technique = string_at(from, "technique"),
                .title = string_at(from, "title"),
                .claim = string_at(from, "claim"),
                .goal = string_at(from, "goal"),
                .goal_metric = string_at(from, "goal_metric"),
                .knobs = object_at(from, "knobs").get<std::map<std::string, std::int64_t>>(),
                .sweep_key = string_at(from, "sweep_key"),
                .status = status_at(from),
                .reason = string_at(from, "reason"),
                .notes = strings_at(from, "notes"),
                .log = string_at(from, "log"),
                .bound_by = string_at(from, "bound_by"),
                .intensity = number_at(from, "intensity"),
                .conditions = conditions_from_json(object_at(from, "conditions")),
                .seconds = number_at(from, "seconds")};
  if (version == 1) {
    read_sides_v1(from, result);
  } else {
    read_sides(from, result);
  }
  check_integrity(result);
  return result;
}

}  // namespace gauntlet::lab::inline records
