#include "lab/run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/run/gates.h"
#include "lab/run/metrics.h"
#include "stats/median.h"

namespace gauntlet::lab::inline run {
namespace {

const char* name_of(Goal goal) {
  switch (goal) {
    case Goal::speed:
      return "speed";
    case Goal::memory:
      return "memory";
    case Goal::accuracy:
      return "accuracy";
    case Goal::tail_latency:
      return "tail_latency";
  }
  return "?";
}

// A goal other than speed may not be bought with more than this much time.
constexpr double kSpeedGivenUp = 0.95;

SideResult side_result(const SideSource& source, std::size_t side,
                       const std::vector<stats::ProcessBlocks>& processes, const Cost& cost) {
  std::vector<double> samples;
  for (const stats::ProcessBlocks& blocks : processes) {
    for (const stats::Block& block : blocks) {
      samples.insert(samples.end(), block.ns[side].begin(), block.ns[side].end());
    }
  }
  SideResult result{.name = source.name, .role = targets::name_of(source.role)};
  result.ns = stats::estimate(processes, [side](const stats::Block& b) { return b.mean(side); });
  result.spread = stats::spread(samples);
  result.samples = static_cast<std::int64_t>(samples.size());
  result.gb_per_s = (cost.read_bytes + cost.write_bytes) / result.ns.value;
  result.gflop_per_s = cost.flops / result.ns.value;
  return result;
}

using Numbers = std::map<std::string, double>;

/// A process that measured: one that found the GPU too hot read no outcomes.
const Measurement& measured_process(const Evidence& evidence) {
  return *std::ranges::find_if(evidence.processes, &Measurement::ok);
}

/// Where the witness's numbers are, by side; an empty string or why there are none.
std::string find_numbers(const Witness& witness, const Evidence& evidence, std::size_t side,
                         const Numbers*& numbers) {
  switch (witness.source) {
    case Witness::Source::fact:
      numbers = &measured_process(evidence).sides[side].facts;
      return "";
    case Witness::Source::outcome:
      numbers = &measured_process(evidence).sides[side].outcomes;
      return "";
    case Witness::Source::counter:
    case Witness::Source::trace:
      if (!evidence.profile) return "run with --profile minimal";
      if (!evidence.profile->why_not.empty()) return evidence.profile->why_not;
      numbers = witness.source == Witness::Source::trace ? &evidence.profile->sides[side].trace
                                                         : &evidence.profile->sides[side].counters;
      return "";
    case Witness::Source::none:
      break;
  }
  return witness.meaning;
}

const char* name_of(Witness::Source source) {
  switch (source) {
    case Witness::Source::counter:
      return "counter";
    case Witness::Source::trace:
      return "trace";
    case Witness::Source::fact:
      return "fact";
    case Witness::Source::outcome:
      return "outcome";
    case Witness::Source::none:
      break;
  }
  return "none";
}

WitnessResult judge_witness(const Witness& witness, const SidePair& sides, const Target& target,
                            BackendKind backend, const Evidence& evidence) {
  WitnessResult result{
      .name = witness.name, .meaning = witness.meaning, .source = name_of(witness.source)};
  if (witness.source == Witness::Source::none) {
    result.why_not = witness.meaning;
    return result;
  }
  const bool falls = witness.moves == Witness::Moves::falls;
  result.expected =
      fmt::format("{} by at least {:.3g}x", falls ? "falls" : "rises", witness.factor);
  for (const std::size_t side : {sides.from, sides.to}) {
    const Numbers* numbers = nullptr;
    result.why_not = find_numbers(witness, evidence, side, numbers);
    if (!result.why_not.empty()) return result;
    const auto found = numbers->find(witness.name);
    if (found == numbers->end() || std::isnan(found->second)) {
      result.why_not = fmt::format("the {} side did not report {}",
                                   target.sides(backend)[side].name, witness.name);
      return result;
    }
    (side == sides.from ? result.before : result.after) = found->second;
  }
  result.collected = true;
  const double high = falls ? result.before : result.after;
  const double low = falls ? result.after : result.before;
  // Falling to zero is a move of any factor.
  result.moved = high > 0 && high >= witness.factor * low;
  return result;
}

/// Passed or no_gain by the numbers alone.
void decide_gain(Result& result, const Target& target) {
  const stats::Interval& speedup = result.headline().speedup;
  const double bar = target.pair.bar;
  result.status = Status::passed;
  if (target.pair.goal == Goal::speed) {
    if (!(speedup.lo > bar)) {
      result.status = Status::no_gain;
      result.reason = fmt::format("speedup {:.3f} [{:.3f}, {:.3f}] does not clear {:.2f}",
                                  speedup.value, speedup.lo, speedup.hi, bar);
    }
    return;
  }
  const stats::Interval& gain = result.headline().gain;
  if (gain.value > 0 && !gain.known()) {
    result.status = Status::no_gain;
    result.reason =
        fmt::format("{} improves {:.3f}x, and one block is too little to know how surely",
                    target.pair.goal_metric, gain.value);
  } else if (!(gain.lo > bar)) {
    result.status = Status::no_gain;
    result.reason = fmt::format("{} improves {:.3f}x [{:.3f}, {:.3f}], which does not clear {:.2f}",
                                target.pair.goal_metric, gain.value, gain.lo, gain.hi, bar);
  } else if (speedup.hi < kSpeedGivenUp) {
    result.status = Status::no_gain;
    result.reason = fmt::format("{} improves {:.2f}x, but at {:.2f}x the speed",
                                target.pair.goal_metric, gain.value, speedup.value);
  }
}

/// Why a comparison's mechanism did not show, where somebody looked for it; empty where it did.
/// Counters are there only when they were asked for; without, unwitnessed() says that nobody
/// looked.
std::string mechanism_missing(const WitnessResult& witness, const Evidence& evidence) {
  if (witness.source.empty() || witness.source == "none" || witness.shows_mechanism()) return "";
  if (witness.collected) {
    return fmt::format(
        "the witness did not move: {} went from {:.4g} to {:.4g}, but {} was claimed, so the "
        "technique is not what made the difference",
        witness.name, witness.before, witness.after, witness.expected);
  }
  const bool profiled = witness.source == "counter" || witness.source == "trace";
  const bool asked = !profiled || evidence.profile;
  if (!asked) return "";
  return fmt::format("faster, but the mechanism could not be witnessed: {}", witness.why_not);
}

/// A gain whose mechanism did not show is not the technique's, be it a pair's or that of a step of
/// a lab. Steps that gained nothing have nothing to explain; what their witness did is a note.
void demand_witness(Result& result, const Evidence& evidence) {
  for (const ComparisonResult& comparison : result.comparisons) {
    const std::string missing = mechanism_missing(comparison.witness, evidence);
    if (missing.empty()) continue;
    const bool pair = comparison.kind == "pair";
    const std::string what = pair ? missing : comparison.to + ": " + missing;
    if (!pair && comparison.verdict != stats::Gain::gain) {
      if (comparison.witness.collected) result.notes.push_back(what);
    } else if (result.status == Status::passed) {
      result.status = Status::no_gain;
      result.reason = what;
    }
  }
}

/// A CPU side that uses the pool says so by the fact "threads"; ranks are on several CPUs.
Threads threads_of(BackendKind backend, const Evidence& evidence, std::size_t side) {
  if (backend == BackendKind::ranks) return Threads::all;
  const auto& facts = measured_process(evidence).sides[side].facts;
  const auto threads = facts.find("threads");
  return threads != facts.end() && threads->second > 1 ? Threads::all : Threads::one;
}

bool refuse(Result& result, const std::string& reason) {
  result.status = Status::wrong;
  result.reason = reason;
  result.sides.clear();
  result.comparisons.clear();
  result.metrics.clear();
  result.counters.clear();
  return false;
}

bool place_sides(Result& result, const Cost& cost, const Evidence& evidence) {
  if (!evidence.ceilings) return true;
  for (std::size_t side = 0; side < result.sides.size(); ++side) {
    const RooflinePoint point = place(cost, result.sides[side].ns.value, *evidence.ceilings,
                                      threads_of(result.backend, evidence, side));
    result.sides[side].ceiling_percent = point.percent;
    result.bound_by = point.bound_by;
    result.intensity = point.intensity;
    const Measurement& process = measured_process(evidence);
    if (const auto why = above_ceiling(cost, result.sides[side].ns.value, process,
                                       process.sides[side].repetitions, *evidence.ceilings,
                                       threads_of(result.backend, evidence, side))) {
      return refuse(result, result.sides[side].name + " " + *why);
    }
  }
  return true;
}

/// Compares the bytes a pair declares with what the DRAM counters saw. Where a profile was asked
/// for on a GPU and they could not be read, `unread` says why.
bool check_traffic(Result& result, const Cost& cost, const Evidence& evidence,
                   std::string& unread) {
  const double declared = cost.read_bytes + cost.write_bytes;
  if (!evidence.profile || cost.level != Cost::Level::dram || declared <= 0) return true;
  const bool has_counters = result.backend == BackendKind::cuda;
  if (!evidence.profile->why_not.empty()) {
    if (has_counters) unread = evidence.profile->why_not;
    return true;
  }
  MetricResult traffic{.unit = "x declared bytes", .sides = {}};
  for (std::size_t side = 0; side < result.sides.size(); ++side) {
    const Numbers& counters = evidence.profile->sides[side].counters;
    const auto read = counters.find("dram__bytes_read.sum");
    const auto written = counters.find("dram__bytes_write.sum");
    if (read == counters.end() || written == counters.end() || std::isnan(read->second) ||
        std::isnan(written->second)) {
      if (has_counters) unread = result.sides[side].name + " has no DRAM counters";
      return true;
    }
    traffic.sides.push_back({.value = (read->second + written->second) / declared});
    const double cache = evidence.ceilings ? evidence.ceilings->caches.last_bytes : 0;
    if (const auto why = below_traffic(cost, read->second, written->second, cache)) {
      return refuse(result, result.sides[side].name + " " + *why);
    }
  }
  result.metrics["dram_traffic"] = std::move(traffic);
  return true;
}

void add_counters(Result& result, const Evidence& evidence) {
  if (!evidence.profile) return;
  for (std::size_t side = 0; side < evidence.profile->sides.size(); ++side) {
    for (const auto& [name, value] : evidence.profile->sides[side].counters) {
      auto& values = result.counters[name];
      values.resize(result.sides.size(), std::numeric_limits<double>::quiet_NaN());
      values[side] = value;
    }
  }
}

void merge_conditions(Result& result, const std::vector<Measurement>& processes) {
  Conditions& total = result.conditions;
  for (const Measurement& m : processes) {
    const Conditions& c = m.conditions;
    ++total.processes;
    total.blocks += c.blocks;
    total.dropped_blocks += c.dropped_blocks;
    if (c.sm_clock_mhz_min > 0) {
      total.sm_clock_mhz_min = total.sm_clock_mhz_min == 0
                                   ? c.sm_clock_mhz_min
                                   : std::min(total.sm_clock_mhz_min, c.sm_clock_mhz_min);
    }
    total.sm_clock_mhz_max = std::max(total.sm_clock_mhz_max, c.sm_clock_mhz_max);
    total.power_w_max = std::max(total.power_w_max, c.power_w_max);
    total.temperature_c_max = std::max(total.temperature_c_max, c.temperature_c_max);
    total.cold = c.cold;
    for (const std::string& reason : c.throttle_reasons) {
      if (std::ranges::find(total.throttle_reasons, reason) == total.throttle_reasons.end()) {
        total.throttle_reasons.push_back(reason);
      }
    }
  }
}

void merge_verification(Result& result, const std::vector<Measurement>& processes) {
  VerificationResult& total = result.verification;
  for (const Measurement& m : processes) {
    total.checks += m.verification.checks;
    total.timed_checks += m.verification.timed_checks;
    total.recomputed_percent =
        std::min(total.recomputed_percent, m.verification.recomputed_percent);
    total.seen_percent = std::min(total.seen_percent, m.verification.seen_percent);
    if (m.verification.max_error >= total.max_error) {
      total.max_error = m.verification.max_error;
      total.bound = m.verification.bound;
    }
  }
}

}  // namespace

bool is_too_hot(const Measurement& m) {
  return !m.ok && m.blocks.empty() && m.conditions.dropped_blocks > 0;
}

bool is_above_ceiling(const Result& result) {
  return result.status == Status::wrong && result.reason.find(kImpossible) != std::string::npos;
}

Result describe(const Target& target, BackendKind backend, const Knobs& knobs) {
  Result result;
  result.id = target.id();
  result.backend = backend;
  result.chapter = target.source.chapter;
  result.technique = target.pair.technique;
  result.title = target.pair.title;
  const BackendFacts* facts = target.declared(backend);
  result.kind = facts && facts->kind == Kind::demonstration ? "demonstration" : "comparison";
  result.claim = facts ? facts->claim : "";
  result.goal = name_of(target.pair.goal);
  if (target.pair.goal != Goal::speed) result.goal_metric = target.pair.goal_metric;
  result.knobs = knobs.all();
  return result;
}

void judge(Result& result, const Target& target, const Knobs& knobs, const Evidence& evidence) {
  merge_conditions(result, evidence.processes);
  merge_verification(result, evidence.processes);
  std::vector<stats::ProcessBlocks> blocks;
  for (const Measurement& m : evidence.processes) {
    if (!m.ok && !is_too_hot(m)) {
      refuse(result, m.reason);
      return;
    }
    if (m.ok) blocks.push_back(m.blocks);
  }
  if (evidence.profile && !evidence.profile->wrong.empty()) {
    refuse(result, evidence.profile->wrong);
    return;
  }
  // The luck of one process's memory layout is no result, where more were asked for.
  if (blocks.empty() || (blocks.size() < 2 && evidence.processes.size() > 1)) {
    result.status = Status::skipped;
    result.reason = fmt::format("only {} of {} processes found the GPU cool enough to measure",
                                blocks.size(), evidence.processes.size());
    return;
  }
  const Cost cost = target.facts(result.backend).cost(knobs);
  const std::vector<SideSource>& sources = target.sides(result.backend);
  for (std::size_t side = 0; side < sources.size(); ++side) {
    result.sides.push_back(side_result(sources[side], side, blocks, cost));
  }
  add_metrics(result, target, knobs, evidence.processes);
  for (const SidePair& pair : target.comparisons(result.backend)) {
    const stats::Interval speedup = stats::estimate_ratio(blocks, pair.from, pair.to);
    const bool by_speed = target.pair.goal == Goal::speed;
    const stats::Interval gain = by_speed ? stats::Interval{} : metric_gain(result, target, pair);
    result.comparisons.push_back(
        {.from = sources[pair.from].name,
         .to = sources[pair.to].name,
         .kind = targets::name_of(pair.kind),
         .speedup = speedup,
         .gain = gain,
         .verdict = stats::gain(by_speed ? speedup : gain, target.pair.bar),
         .witness = judge_witness(target.witness(result.backend, pair), pair, target,
                                  result.backend, evidence)});
  }
  add_counters(result, evidence);
  std::string unread_traffic;
  if (!place_sides(result, cost, evidence) ||
      !check_traffic(result, cost, evidence, unread_traffic)) {
    return;
  }
  decide_gain(result, target);
  demand_witness(result, evidence);
  if (!unread_traffic.empty() && result.status == Status::passed) {
    result.status = Status::no_gain;
    result.reason = "faster, but its DRAM traffic could not be read: " + unread_traffic;
  }
}

}  // namespace gauntlet::lab::inline run
