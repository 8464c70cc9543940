#include "lab/run/worker.h"

#include <unistd.h>

#include <iostream>
#include <new>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/process.h"
#include "lab/ceilings/ceilings.h"

namespace gauntlet::lab::inline run {
namespace {

using nlohmann::json;

void send(const json& message) {
  // A pair may leave any bytes in a reason; invalid UTF-8 must not end the worker.
  const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t count = write(kMessageFd, line.data() + sent, line.size() - sent);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

void send_error(const std::string& reason) { send({{"type", "error"}, {"reason", reason}}); }

ProfileOutcome profile_pair(const Target& target, const Knobs& knobs, Backend& backend,
                            const WorkerRequest& request) {
  ProfileOutcome outcome;
  BufferSet set(target, knobs, backend);
  std::vector<Side> sides;
  for (SideIndex side : {kBaseline, kOptimized}) {
    sides.push_back(backend.make_side(target, side, set.params()));
    outcome.facts[side] = sides.back().facts;
  }
  set.fill(request.options.seed);

  auto profiler = make_profiler(request.backend);
  if (!profiler) {
    outcome.why_not = profiler.error().message;
    return outcome;
  }
  std::vector<std::string> metrics = profile_metrics(request.profile, request.backend);
  const Witness& witness = target.facts(request.backend).witness;
  if (witness.source == Witness::Source::counter &&
      std::ranges::find(metrics, witness.name) == metrics.end()) {
    metrics.push_back(witness.name);
  }
  for (SideIndex side : {kBaseline, kOptimized}) {
    const Side& runner = sides[side];
    if (runner.enter) runner.enter();
    runner.run();
    backend.synchronize();
    auto counters = (*profiler)->collect(
        metrics,
        [&] {
          runner.run();
          backend.synchronize();
        },
        [&] { set.reset(); });
    if (runner.leave) runner.leave();
    if (!counters) {
      outcome.why_not = counters.error().message;
      return outcome;
    }
    outcome.counters[side] = *counters;
  }
  return outcome;
}

std::string write_trace(const Target& target, const Knobs& knobs, Backend& backend,
                        const WorkerRequest& request) {
  BufferSet set(target, knobs, backend);
  std::vector<Side> sides;
  for (SideIndex side : {kBaseline, kOptimized}) {
    sides.push_back(backend.make_side(target, side, set.params()));
  }
  set.fill(request.options.seed);
  const auto trace = trace_gpu([&] {
    for (const Side& side : sides) {
      set.reset();
      if (side.enter) side.enter();
      for (int run = 0; run < 3; ++run) side.run();
      backend.synchronize();
      if (side.leave) side.leave();
    }
  });
  if (!trace) return trace.error().message;
  const auto written = atomic_write_file(request.trace_path, *trace);
  return written ? "" : written.error().message;
}

int run_on_target(const Catalog& catalog, const WorkerRequest& request) {
  const Target* target = catalog.find(request.target);
  if (!target) {
    send_error("worker knows no target " + request.target);
    return 1;
  }
  auto knobs =
      Knobs::defaults(target->pair.knobs, request.backend).with(target->pair.knobs, request.knobs);
  if (!knobs) {
    send_error(knobs.error().message);
    return 1;
  }
  auto backend = make_backend(request.backend);
  if (!backend) {
    send_error(backend.error().message);
    return 1;
  }
  if (request.task == WorkerRequest::Task::profile) {
    ProfileOutcome outcome = profile_pair(*target, *knobs, **backend, request);
    if (!request.trace_path.empty()) {
      outcome.trace_error = write_trace(*target, *knobs, **backend, request);
    }
    send({{"type", "profile"},
          {"baseline", outcome.counters[kBaseline]},
          {"optimized", outcome.counters[kOptimized]},
          {"baseline_facts", outcome.facts[kBaseline]},
          {"optimized_facts", outcome.facts[kOptimized]},
          {"why_not", outcome.why_not},
          {"trace_error", outcome.trace_error}});
    return 0;
  }
  const Measurement measurement =
      measure_pair(*target, *knobs, **backend, request.options, [](const MeasureProgress& p) {
        send({{"type", "progress"},
              {"phase", p.phase},
              {"side", p.side},
              {"ratio", p.ratio},
              {"blocks", p.blocks}});
      });
  json message = to_json(measurement);
  message["type"] = "measurement";
  send(message);
  return 0;
}

int run_ceilings(const WorkerRequest& request) {
  const auto ceilings = measure_ceilings(
      request.backend, read_machine(request.backend == BackendKind::cuda),
      [](const std::string& name) {
        send({{"type", "progress"}, {"phase", name}, {"side", ""}, {"ratio", 0}, {"blocks", 0}});
      });
  if (!ceilings) {
    send_error(ceilings.error().message);
    return 1;
  }
  send({{"type", "ceilings"}, {"ceilings", to_json(*ceilings)}});
  return 0;
}

/// Named numbers. JSON has no NaN and no infinity: what arrives as null was no number and is left
/// out.
std::map<std::string, double> numbers(const json& j) {
  std::map<std::string, double> result;
  for (const auto& [name, value] : j.items()) {
    if (!value.is_null()) result[name] = value.get<double>();
  }
  return result;
}

}  // namespace

json to_json(const WorkerRequest& r) {
  const MeasureOptions& o = r.options;
  return {{"task", static_cast<int>(r.task)},
          {"target", r.target},
          {"backend", static_cast<int>(r.backend)},
          {"knobs", r.knobs},
          {"profile", static_cast<int>(r.profile)},
          {"trace_path", r.trace_path},
          {"options",
           {{"budget_s", o.budget_s},
            {"half_width", o.half_width},
            {"min_blocks", o.min_blocks},
            {"max_blocks", o.max_blocks},
            {"fixed_blocks", o.fixed_blocks},
            {"warmup_s", o.warmup_s},
            {"warmup_runs", o.warmup_runs},
            {"cold", o.cold},
            {"checked_blocks", o.checked_blocks},
            {"seed", o.seed}}}};
}

WorkerRequest worker_request_from_json(const json& j) {
  const json& o = j.at("options");
  return {.task = static_cast<WorkerRequest::Task>(j.at("task").get<int>()),
          .target = j.at("target"),
          .backend = static_cast<BackendKind>(j.at("backend").get<int>()),
          .knobs = j.at("knobs").get<Knobs::Overrides>(),
          .options = {.budget_s = o.at("budget_s"),
                      .half_width = o.at("half_width"),
                      .min_blocks = o.at("min_blocks"),
                      .max_blocks = o.at("max_blocks"),
                      .fixed_blocks = o.at("fixed_blocks"),
                      .warmup_s = o.at("warmup_s"),
                      .warmup_runs = o.at("warmup_runs"),
                      .cold = o.at("cold"),
                      .checked_blocks = o.at("checked_blocks"),
                      .seed = o.at("seed")},
          .profile = static_cast<ProfileLevel>(j.at("profile").get<int>()),
          .trace_path = j.at("trace_path")};
}

json to_json(const Measurement& m) {
  json blocks = json::array();
  for (const Block& b : m.blocks) {
    blocks.push_back({b.baseline_ns[0], b.optimized_ns[0], b.optimized_ns[1], b.baseline_ns[1]});
  }
  const Conditions& c = m.conditions;
  return {{"ok", m.ok},
          {"reason", m.reason},
          {"side", m.side},
          {"blocks", blocks},
          {"repetitions", {m.repetitions[0], m.repetitions[1]}},
          {"max_error", m.verification.max_error},
          {"bound", m.verification.bound},
          {"checks", m.verification.checks},
          {"checked_percent", m.verification.checked_percent},
          {"side_error", {m.side_error[0], m.side_error[1]}},
          {"facts", {m.facts[0], m.facts[1]}},
          {"conditions",
           {{"blocks", c.blocks},
            {"dropped_blocks", c.dropped_blocks},
            {"sm_clock_mhz_min", c.sm_clock_mhz_min},
            {"sm_clock_mhz_max", c.sm_clock_mhz_max},
            {"power_w_max", c.power_w_max},
            {"temperature_c_max", c.temperature_c_max},
            {"throttle_reasons", c.throttle_reasons},
            {"cold", c.cold}}}};
}

Measurement measurement_from_json(const json& j) {
  Measurement m;
  m.ok = j.at("ok");
  m.reason = j.at("reason");
  m.side = j.at("side");
  for (const json& b : j.at("blocks")) {
    m.blocks.push_back({.baseline_ns = {b.at(0), b.at(3)}, .optimized_ns = {b.at(1), b.at(2)}});
  }
  for (int side : {0, 1}) {
    m.repetitions[side] = j.at("repetitions").at(side);
    // JSON has no infinity: an unbounded error arrives as null.
    const json& error = j.at("side_error").at(side);
    m.side_error[side] = error.is_null() ? INFINITY : error.get<double>();
    m.facts[side] = numbers(j.at("facts").at(side));
  }
  const json& error = j.at("max_error");
  m.verification = {.max_error = error.is_null() ? INFINITY : error.get<double>(),
                    .bound = j.at("bound"),
                    .checks = j.at("checks"),
                    .checked_percent = j.at("checked_percent")};
  const json& c = j.at("conditions");
  m.conditions.blocks = c.at("blocks");
  m.conditions.dropped_blocks = c.at("dropped_blocks");
  m.conditions.sm_clock_mhz_min = c.at("sm_clock_mhz_min");
  m.conditions.sm_clock_mhz_max = c.at("sm_clock_mhz_max");
  m.conditions.power_w_max = c.at("power_w_max");
  m.conditions.temperature_c_max = c.at("temperature_c_max");
  m.conditions.throttle_reasons = c.at("throttle_reasons").get<std::vector<std::string>>();
  m.conditions.cold = c.at("cold");
  return m;
}

ProfileOutcome profile_outcome_from_json(const json& j) {
  ProfileOutcome outcome;
  outcome.counters[kBaseline] = numbers(j.at("baseline"));
  outcome.counters[kOptimized] = numbers(j.at("optimized"));
  outcome.facts[kBaseline] = numbers(j.at("baseline_facts"));
  outcome.facts[kOptimized] = numbers(j.at("optimized_facts"));
  outcome.why_not = j.at("why_not");
  outcome.trace_error = j.at("trace_error");
  return outcome;
}

int worker_main(const Catalog& catalog, const std::string& request_json) {
  try {
    const WorkerRequest request = worker_request_from_json(json::parse(request_json));
    return request.task == WorkerRequest::Task::ceilings ? run_ceilings(request)
                                                         : run_on_target(catalog, request);
  } catch (const std::bad_alloc&) {
    send_error("out of memory");
  } catch (const std::exception& error) {
    send_error(error.what());
  }
  return 1;
}

}  // namespace gauntlet::lab::inline run
