#include "lab/records/result.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/check.h"
#include "core/json_fields.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<Status, const char*>, 7> kStatusNames{{
    {Status::passed, "passed"},
    {Status::no_gain, "no_gain"},
    {Status::regressed, "regressed"},
    {Status::wrong, "wrong"},
    {Status::crashed, "crashed"},
    {Status::timed_out, "timed_out"},
    {Status::skipped, "skipped"},
}};

json side_to_json(const std::optional<SideResult>& side) {
  if (!side) return nullptr;
  return {{"median_ns", side->ns.median},
          {"lo_ns", side->ns.lo},
          {"hi_ns", side->ns.hi},
          {"spread", side->spread},
          {"samples", side->samples},
          {"gb_per_s", side->gb_per_s},
          {"gflop_per_s", side->gflop_per_s},
          {"ceiling_percent", side->ceiling_percent}};
}

std::optional<SideResult> side_at(const json& result, const char* key) {
  const auto side = result.find(key);
  if (side == result.end() || side->is_null()) return std::nullopt;
  return SideResult{.ns = {.median = number_at(*side, "median_ns"),
                           .lo = number_at(*side, "lo_ns"),
                           .hi = number_at(*side, "hi_ns")},
                    .spread = number_at(*side, "spread"),
                    .samples = integer_at(*side, "samples"),
                    .gb_per_s = number_at(*side, "gb_per_s"),
                    .gflop_per_s = number_at(*side, "gflop_per_s"),
                    .ceiling_percent = number_at(*side, "ceiling_percent")};
}

json metrics_to_json(const std::map<std::string, MetricResult>& metrics) {
  json out = json::object();
  for (const auto& [name, metric] : metrics) {
    out[name] = {
        {"baseline", metric.baseline}, {"optimized", metric.optimized}, {"unit", metric.unit}};
  }
  return out;
}

std::map<std::string, MetricResult> metrics_at(const json& result, const char* key) {
  std::map<std::string, MetricResult> metrics;
  const auto found = result.find(key);
  if (found == result.end() || found->is_null()) return metrics;
  for (const auto& [name, metric] : found->items()) {
    metrics[name] = {.baseline = number_at(metric, "baseline"),
                     .optimized = number_at(metric, "optimized"),
                     .unit = string_at(metric, "unit")};
  }
  return metrics;
}

json verification_to_json(const VerificationResult& verification) {
  return {{"max_error", verification.max_error},
          {"bound", verification.bound},
          {"checks", verification.checks},
          {"checked_percent", verification.checked_percent}};
}

VerificationResult verification_at(const json& result) {
  const json verification = result.value("verification", json::object());
  return {.max_error = number_at(verification, "max_error"),
          .bound = number_at(verification, "bound"),
          .checks = integer_at(verification, "checks"),
          .checked_percent = number_at(verification, "checked_percent", 100)};
}

json witness_to_json(const WitnessResult& witness) {
  const auto when_collected = [&](double value) {
    return witness.collected ? json(value) : json();
  };
  return {{"name", witness.name},
          {"meaning", witness.meaning},
          {"source", witness.source},
          {"collected", witness.collected},
          {"why_not", witness.why_not},
          {"baseline", when_collected(witness.baseline)},
          {"optimized", when_collected(witness.optimized)},
          {"moved", witness.moved},
          {"expected", witness.expected}};
}

WitnessResult witness_at(const json& result) {
  const json witness = result.value("witness", json::object());
  const bool collected = flag_at(witness, "collected");
  return {.name = string_at(witness, "name"),
          .meaning = string_at(witness, "meaning"),
          .source = string_at(witness, "source"),
          .collected = collected,
          .why_not = string_at(witness, "why_not"),
          .baseline = collected ? number_at(witness, "baseline") : 0,
          .optimized = collected ? number_at(witness, "optimized") : 0,
          .moved = flag_at(witness, "moved"),
          .expected = string_at(witness, "expected")};
}

json conditions_to_json(const Conditions& conditions) {
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

Conditions conditions_at(const json& result) {
  const json conditions = result.value("conditions", json::object());
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

std::map<std::string, std::int64_t> knobs_at(const json& result) {
  return result.value("knobs", json::object()).get<std::map<std::string, std::int64_t>>();
}

BackendKind backend_at(const json& result) {
  const auto name = result.at("backend").get<std::string>();
  for (const BackendKind kind : {BackendKind::cpu, BackendKind::cuda}) {
    if (name == name_of(kind)) return kind;
  }
  fail("unknown backend '" + name + "' in a result; known are cpu and cuda");
}

Status status_at(const json& result) {
  const auto name = result.at("status").get<std::string>();
  const auto status = status_from(name);
  check(status.has_value(), "unknown status '" + name + "' in a result");
  return *status;
}

std::optional<Estimate> speedup_at(const json& result) {
  const auto speedup = result.find("speedup");
  if (speedup == result.end() || speedup->is_null()) return std::nullopt;
  return Estimate{.median = number_at(*speedup, "median"),
                  .lo = number_at(*speedup, "lo"),
                  .hi = number_at(*speedup, "hi")};
}

}  // namespace

const char* name_of(Status status) {
  for (const auto& [value, name] : kStatusNames) {
    if (value == status) return name;
  }
  fail("a status without a name");
}

std::optional<Status> status_from(const std::string& name) {
  for (const auto& [value, known] : kStatusNames) {
    if (name == known) return value;
  }
  return std::nullopt;
}

bool is_failure(Status status) {
  return status == Status::wrong || status == Status::crashed || status == Status::timed_out ||
         status == Status::regressed;
}

json to_json(const Result& result) {
  json out = {{"id", result.id},
              {"backend", name_of(result.backend)},
              {"kind", result.kind},
              {"chapter", result.chapter},
              {"technique", result.technique},
              {"title", result.title},
              {"claim", result.claim},
              {"goal", result.goal},
              {"knobs", result.knobs},
              {"sweep_key", result.sweep_key},
              {"status", name_of(result.status)},
              {"reason", result.reason},
              {"notes", result.notes},
              {"log", result.log},
              {"speedup", nullptr},
              {"baseline", side_to_json(result.baseline)},
              {"optimized", side_to_json(result.optimized)},
              {"ceiling_percent", result.ceiling_percent},
              {"bound_by", result.bound_by},
              {"intensity", result.intensity},
              {"verification", verification_to_json(result.verification)},
              {"metrics", metrics_to_json(result.metrics)},
              {"witness", witness_to_json(result.witness)},
              {"counters", metrics_to_json(result.counters)},
              {"conditions", conditions_to_json(result.conditions)},
              {"samples", result.samples},
              {"seconds", result.seconds}};
  if (const auto& speedup = result.speedup) {
    out["speedup"] = {{"median", speedup->median}, {"lo", speedup->lo}, {"hi", speedup->hi}};
  }
  return out;
}

Result result_from_json(const json& json) {
  return {.id = json.at("id").get<std::string>(),
          .backend = backend_at(json),
          .kind = string_at(json, "kind"),
          .chapter = string_at(json, "chapter"),
          .technique = string_at(json, "technique"),
          .title = string_at(json, "title"),
          .claim = string_at(json, "claim"),
          .goal = string_at(json, "goal"),
          .knobs = knobs_at(json),
          .sweep_key = string_at(json, "sweep_key"),
          .status = status_at(json),
          .reason = string_at(json, "reason"),
          .notes = strings_at(json, "notes"),
          .log = string_at(json, "log"),
          .speedup = speedup_at(json),
          .baseline = side_at(json, "baseline"),
          .optimized = side_at(json, "optimized"),
          .ceiling_percent = number_at(json, "ceiling_percent"),
          .bound_by = string_at(json, "bound_by"),
          .intensity = number_at(json, "intensity"),
          .verification = verification_at(json),
          .metrics = metrics_at(json, "metrics"),
          .witness = witness_at(json),
          .counters = metrics_at(json, "counters"),
          .conditions = conditions_at(json),
          .samples = integer_at(json, "samples"),
          .seconds = number_at(json, "seconds")};
}

}  // namespace gauntlet::lab::inline records
