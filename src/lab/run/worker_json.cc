// The worker's protocol as JSON. Parent and worker are the same file, so it has no version.
#include <cmath>
#include <nlohmann/json.hpp>

#include "lab/records/conditions_json.h"
#include "lab/run/worker.h"

namespace gauntlet::lab::inline run {
namespace {

using nlohmann::json;

/// Named numbers. JSON has no NaN and no infinity: what arrives as null was no number and is left
/// out.
std::map<std::string, double> numbers(const json& j) {
  std::map<std::string, double> result;
  for (const auto& [name, value] : j.items()) {
    if (!value.is_null()) result[name] = value.get<double>();
  }
  return result;
}

/// An unbounded error arrives as null.
double unbounded(const json& value) { return value.is_null() ? INFINITY : value.get<double>(); }

json side_to_json(const SideMeasurement& side) {
  return {{"repetitions", side.repetitions},
          {"error", side.error},
          {"facts", side.facts},
          {"outcomes", side.outcomes},
          {"distributions", side.distributions}};
}

SideMeasurement side_from_json(const json& side) {
  SideMeasurement out{.repetitions = side.at("repetitions"),
                      .error = unbounded(side.at("error")),
                      .facts = numbers(side.at("facts")),
                      .outcomes = numbers(side.at("outcomes")),
                      .distributions = {}};
  for (const auto& [name, values] : side.at("distributions").items()) {
    auto& blocks = out.distributions[name];
    for (const json& block : values) {
      std::vector<float>& kept = blocks.emplace_back();
      for (const json& value : block) {
        if (!value.is_null()) kept.push_back(value.get<float>());
      }
    }
  }
  return out;
}

}  // namespace

json to_json(const WorkerRequest& r) {
  const MeasureOptions& o = r.options;
  return {{"task", static_cast<int>(r.task)},
          {"target", r.target},
          {"backend", name_of(r.backend)},
          {"without", r.without},
          {"knobs", r.knobs},
          {"profile", static_cast<int>(r.profile)},
          {"trace_path", r.trace_path},
          {"token", r.token},
          {"token_path", r.token_path},
          {"ranks", {{"count", r.ranks.count}, {"transport", r.ranks.transport}}},
          {"options",
           {{"budget_s", o.budget_s},
            {"half_width", o.half_width},
            {"min_blocks", o.min_blocks},
            {"max_blocks", o.max_blocks},
            {"fixed_blocks", o.fixed_blocks},
            {"warmup_s", o.warmup_s},
            {"warmup_runs", o.warmup_runs},
            {"cold", o.cold},
            {"least_checks", o.least_checks},
            {"least_traps", o.least_traps},
            {"seed", o.seed}}}};
}

WorkerRequest worker_request_from_json(const json& j) {
  const json& o = j.at("options");
  return {
      .task = static_cast<WorkerRequest::Task>(j.at("task").get<int>()),
      .target = j.at("target"),
      .backend = backend_from(j.at("backend")).value(),
      .without = j.at("without").get<std::vector<std::string>>(),
      .knobs = j.at("knobs").get<Knobs::Overrides>(),
      .options = {.budget_s = o.at("budget_s"),
                  .half_width = o.at("half_width"),
                  .min_blocks = o.at("min_blocks"),
                  .max_blocks = o.at("max_blocks"),
                  .fixed_blocks = o.at("fixed_blocks"),
                  .warmup_s = o.at("warmup_s"),
                  .warmup_runs = o.at("warmup_runs"),
                  .cold = o.at("cold"),
                  .least_checks = o.at("least_checks"),
                  .least_traps = o.at("least_traps"),
                  .seed = o.at("seed")},
      .profile = static_cast<ProfileLevel>(j.at("profile").get<int>()),
      .trace_path = j.at("trace_path"),
      .token = j.at("token"),
      .token_path = j.at("token_path"),
      .ranks = {.count = j.at("ranks").at("count"), .transport = j.at("ranks").at("transport")}};
}

json to_json(const Measurement& m) {
  json blocks = json::array();
  for (const stats::Block& block : m.blocks) blocks.push_back(block.ns);
  json sides = json::array();
  for (const SideMeasurement& side : m.sides) sides.push_back(side_to_json(side));
  const VerificationResult& v = m.verification;
  return {{"ok", m.ok},
          {"reason", m.reason},
          {"side", m.side},
          {"blocks", std::move(blocks)},
          {"sides", std::move(sides)},
          {"set_bytes", m.set_bytes},
          {"sets", m.sets},
          {"verification",
           {{"max_error", v.max_error},
            {"bound", v.bound},
            {"checks", v.checks},
            {"timed_checks", v.timed_checks},
            {"recomputed_percent", v.recomputed_percent},
            {"seen_percent", v.seen_percent}}},
          {"conditions", to_json(m.conditions)}};
}

Measurement measurement_from_json(const json& j) {
  Measurement m{.ok = j.at("ok"), .reason = j.at("reason"), .side = j.at("side")};
  for (const json& block : j.at("blocks")) {
    m.blocks.push_back({block.get<std::vector<std::array<double, 2>>>()});
  }
  for (const json& side : j.at("sides")) m.sides.push_back(side_from_json(side));
  m.set_bytes = j.at("set_bytes");
  m.sets = j.at("sets");
  const json& v = j.at("verification");
  m.verification = {.max_error = unbounded(v.at("max_error")),
                    .bound = unbounded(v.at("bound")),
                    .checks = v.at("checks"),
                    .timed_checks = v.at("timed_checks"),
                    .recomputed_percent = v.at("recomputed_percent"),
                    .seen_percent = v.at("seen_percent")};
  m.conditions = conditions_from_json(j.at("conditions"));
  return m;
}

json to_json(const ProfileOutcome& outcome) {
  json sides = json::array();
  for (const SideProfile& side : outcome.sides) {
    sides.push_back({{"counters", side.counters}, {"trace", side.trace}});
  }
  return {{"sides", std::move(sides)},
          {"why_not", outcome.why_not},
          {"wrong", outcome.wrong},
          {"trace_error", outcome.trace_error}};
}

ProfileOutcome profile_outcome_from_json(const json& j) {
  ProfileOutcome outcome{.sides = {},
                         .why_not = j.at("why_not"),
                         .wrong = j.at("wrong"),
                         .trace_error = j.at("trace_error")};
  for (const json& side : j.at("sides")) {
    outcome.sides.push_back(
        {.counters = numbers(side.at("counters")), .trace = numbers(side.at("trace"))});
  }
  return outcome;
}

}  // namespace gauntlet::lab::inline run
