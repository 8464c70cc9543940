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
  SideResult result{.name = source.name, .role = author::name_of(source.role)};
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
      if (!evidence.profile) return "run with --profile minimal";
      if (!evidence.profile->why_not.empty()) return evidence.profile->why_not;
      numbers = &evidence.profile->sides[side].counters;
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
void decide_gain(Result& result, const Target& target, const SidePair& headline) {
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
  const stats::Interval gain = metric_gain(result, target, headline);
  if (!(gain.lo > bar)) {
    result.status = Status::no_gain;
    result.reason = fmt::format("{} improves {:.3f}x [{:.3f}, {:.3f}], which does not clear {:.2f}",
                                target.pair.goal_metric, gain.value, gain.lo, gain.hi, bar);
  } else if (speedup.hi < kSpeedGivenUp) {
    result.status = Status::no_gain;
    result.reason = fmt::format("{} improves {:.2f}x, but at {:.2f}x the speed",
                                target.pair.goal_metric, gain.value, speedup.value);
  }
}

/// A gain whose mechanism did not show is not the technique's. Counters are there only when they
/// were asked for; without, the result says that nobody looked.
void demand_witness(Result& result, const Evidence& evidence) {
  for (const ComparisonResult& comparison : result.comparisons) {
    const WitnessResult& witness = comparison.witness;
    const bool decides = comparison.kind == "pair";
    if (witness.source.empty() || witness.source == "none") continue;
    if (!witness.collected) {
      const bool asked = witness.source != "counter" || evidence.profile;
      if (!asked || !decides) {
        result.notes.push_back(fmt::format("mechanism not witnessed{}: {}",
                                           decides ? "" : " at " + comparison.to, witness.why_not));
      } else if (result.status == Status::passed) {
        result.status = Status::no_gain;
        result.reason =
            fmt::format("faster, but the mechanism could not be witnessed: {}", witness.why_not);
      }
    } else if (!witness.moved) {
      const std::string what = fmt::format(
          "the witness did not move: {} went from {:.4g} to {:.4g}, but {} was claimed, so the "
          "technique is not what made the difference",
          witness.name, witness.before, witness.after, witness.expected);
      if (!decides) {
        result.notes.push_back(fmt::format("{}: {}", comparison.to, what));
      } else if (result.status == Status::passed) {
        result.status = Status::no_gain;
        result.reason = what;
      }
    }
  }
}

/// A CPU side that uses the pool says so by the fact "threads".
Threads threads_of(const Evidence& evidence, std::size_t side) {
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
    const RooflinePoint point =
        place(cost, result.sides[side].ns.value, *evidence.ceilings, threads_of(evidence, side));
    result.sides[side].ceiling_percent = point.percent;
    result.bound_by = point.bound_by;
    result.intensity = point.intensity;
    const Measurement& process = measured_process(evidence);
    if (const auto why = above_ceiling(cost, result.sides[side].ns.value, process,
                                       process.sides[side].repetitions, *evidence.ceilings)) {
      return refuse(result, result.sides[side].name + " " + *why);
    }
  }
  return true;
}

/// Compares the bytes a pair declares with what the DRAM counters saw.
bool check_traffic(Result& result, const Cost& cost, const Evidence& evidence) {
  if (!evidence.profile || !evidence.profile->why_not.empty()) return true;
  const double declared = cost.read_bytes + cost.write_bytes;
  if (cost.level != Cost::Level::dram || declared <= 0) return true;
  MetricResult traffic{.unit = "x declared bytes", .sides = {}};
  for (std::size_t side = 0; side < result.sides.size(); ++side) {
    const Numbers& counters = evidence.profile->sides[side].counters;
    const auto read = counters.find("dram__bytes_read.sum");
    const auto written = counters.find("dram__bytes_write.sum");
    if (read == counters.end() || written == counters.end()) return true;
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
  for (const SidePair& pair : target.comparisons(result.backend)) {
    const stats::Interval speedup = stats::estimate_ratio(blocks, pair.from, pair.to);
    result.comparisons.push_back(
        {.from = sources[pair.from].name,
         .to = sources[pair.to].name,
         .kind = author::name_of(pair.kind),
         .speedup = speedup,
         .verdict = stats::gain(speedup, target.pair.bar),
         .witness = judge_witness(target.witness(result.backend, pair), pair, target,
                                  result.backend, evidence)});
  }
  add_metrics(result, target, knobs, evidence.processes);
  add_counters(result, evidence);
  if (!place_sides(result, cost, evidence) || !check_traffic(result, cost, evidence)) return;
  decide_gain(result, target, target.headline(result.backend));
  demand_witness(result, evidence);
}

}  // namespace gauntlet::lab::inline run
