#include "lab/run/profile_target.h"

#include <algorithm>

#include "core/os/files.h"
#include "lab/measure/buffer_set.h"
#include "lab/measure/verify.h"

namespace gauntlet::lab::inline run {
namespace {

std::vector<std::string> wanted_metrics(const Target& target, BackendKind backend,
                                        ProfileLevel level) {
  std::vector<std::string> metrics = profile_metrics(level, backend);
  for (const SidePair& sides : target.comparisons(backend)) {
    const Witness witness = target.witness(backend, sides);
    if (witness.source == Witness::Source::counter &&
        std::ranges::find(metrics, witness.name) == metrics.end()) {
      metrics.push_back(witness.name);
    }
  }
  return metrics;
}

bool wants_trace(const Target& target, BackendKind backend) {
  return std::ranges::any_of(target.comparisons(backend), [&](const SidePair& sides) {
    return target.witness(backend, sides).source == Witness::Source::trace;
  });
}

}  // namespace

ProfileOutcome profile_target(const ProfileJob& job) {
  ProfileOutcome outcome;
  {
    const auto profiler = make_profiler(job.backend.kind());
    if (!profiler) return {.why_not = profiler.error().message};
    outcome = profile_target(job, **profiler);
  }
  // CUPTI counts or traces: the profiler's hooks are gone by now.
  if (wants_trace(job.target, job.backend.kind())) trace_target(job, record_gpu, outcome);
  return outcome;
}

void trace_target(const ProfileJob& job, const Tracer& tracer, ProfileOutcome& outcome) {
  if (!outcome.why_not.empty() || !outcome.wrong.empty()) return;
  const auto& [target, knobs, backend, level, seed] = job;
  BufferSet set(target, knobs, backend);
  Verifier verifier(mix64(seed));
  Random random(mix64(seed + 1));
  for (std::size_t index = 0; index < outcome.sides.size(); ++index) {
    const Side side = backend.make_side(target, index, set.params());
    const auto judged = [&](const Verdict& verdict) {
      const std::string& name = target.sides(backend.kind())[index].name;
      if (!verdict.ok) outcome.wrong = name + " " + verdict.reason + " (traced)";
      return verdict.ok;
    };
    // The first run loads what the second finds there.
    if (!judged(verifier.run(set, side, index, random.next()))) return;
    if (side.enter) side.enter();
    set.renew(random.next());
    set.place_pages();
    set.poison_outputs();
    backend.synchronize();
    const auto trace = tracer([&] {
      backend.call(side.run);
      backend.synchronize();
    });
    const Verdict verdict = verifier.judge(set);
    if (side.leave) side.leave();
    if (!trace) {
      outcome.why_not = trace.error().message;
      return;
    }
    if (!judged(verdict)) return;
    if (trace->dropped_records > 0) {
      outcome.why_not = "the trace lost records";
      return;
    }
    outcome.sides[index].trace = trace_summary(trace->events);
  }
}

ProfileOutcome profile_target(const ProfileJob& job, Profiler& profiler) {
  const auto& [target, knobs, backend, level, seed] = job;
  ProfileOutcome outcome;
  const auto metrics = wanted_metrics(target, backend.kind(), level);
  // Bytes that must come from memory are counted as such only when the caches are empty.
  const bool flushed = target.facts(backend.kind()).cost(knobs).level == Cost::Level::dram;
  BufferSet set(target, knobs, backend);
  Verifier verifier(mix64(seed));
  Random random(seed);
  const auto& sources = target.sides(backend.kind());
  for (std::size_t index = 0; index < sources.size(); ++index) {
    const Side side = backend.make_side(target, index, set.params());
    const auto judged = [&](const Verdict& verdict) {
      if (!verdict.ok) outcome.wrong = sources[index].name + " " + verdict.reason + " (profiled)";
      return verdict.ok;
    };
    if (!judged(verifier.run(set, side, index, random.next()))) return outcome;
    if (side.enter) side.enter();
    backend.synchronize();
    set.renew(random.next());
    auto counters = profiler.collect(
        metrics,
        [&] {
          backend.call(side.run);
          backend.synchronize();
        },
        [&] {
          set.place_pages();
          set.poison_outputs();
          if (flushed) backend.flush_caches();
          backend.synchronize();
        });
    const Verdict verdict = verifier.judge(set);
    if (side.leave) side.leave();
    if (!counters) {
      outcome.why_not = counters.error().message;
      return outcome;
    }
    if (!judged(verdict)) return outcome;
    outcome.sides.push_back({.counters = std::move(*counters)});
  }
  return outcome;
}

std::string write_trace(const ProfileJob& job, const std::string& path) {
  const auto& [target, knobs, backend, level, seed] = job;
  BufferSet set(target, knobs, backend);
  std::vector<Side> sides;
  for (std::size_t side = 0; side < target.sides(backend.kind()).size(); ++side) {
    sides.push_back(backend.make_side(target, side, set.params()));
  }
  set.renew(seed);
  const auto trace = trace_gpu([&] {
    for (const Side& side : sides) {
      set.place_pages();
      if (side.enter) side.enter();
      for (int run = 0; run < 3; ++run) side.run();
      backend.synchronize();
      if (side.leave) side.leave();
    }
  });
  if (!trace) return trace.error().message;
  const auto written = atomic_write_file(path, *trace);
  return written ? "" : written.error().message;
}

}  // namespace gauntlet::lab::inline run
