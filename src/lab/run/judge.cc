#include "lab/run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

SideResult side_result(const std::vector<ProcessBlocks>& processes, SideIndex side,
                       const Cost& cost) {
  SideResult result;
  std::vector<double> samples;
  const auto pick = [side](const Block& b) -> const double* {
    return side == kBaseline ? b.baseline_ns : b.optimized_ns;
  };
  for (const ProcessBlocks& blocks : processes) {
    for (const Block& block : blocks) {
      samples.push_back(pick(block)[0]);
      samples.push_back(pick(block)[1]);
    }
  }
  result.ns =
      estimate(processes, [&](const Block& b) { return (pick(b)[0] + pick(b)[1]) / 2; }, 17);
  result.spread = spread(samples);
  result.samples = static_cast<std::int64_t>(samples.size());
  result.gb_per_s = (cost.read_bytes + cost.write_bytes) / result.ns.median;
  result.gflop_per_s = cost.flops / result.ns.median;
  return result;
}

WitnessResult judge_witness(const Witness& witness, const Evidence& evidence) {
  WitnessResult result{.name = witness.name, .meaning = witness.meaning};
  result.source = witness.source == Witness::Source::counter ? "counter"
                  : witness.source == Witness::Source::fact  ? "fact"
                                                             : "none";
  if (witness.source == Witness::Source::none) {
    result.why_not = witness.meaning;
    return result;
  }
  const bool falls = witness.moves == Witness::Moves::falls;
  result.expected =
      fmt::format("{} by at least {:.3g}x", falls ? "falls" : "rises", witness.factor);
  const std::map<std::string, double>* values[2] = {nullptr, nullptr};
  if (witness.source == Witness::Source::fact) {
    for (int side : {0, 1}) values[side] = &evidence.processes.front().facts[side];
  } else if (!evidence.profile) {
    result.why_not = "run with --profile minimal";
    return result;
  } else if (!evidence.profile->why_not.empty()) {
    result.why_not = evidence.profile->why_not;
    return result;
  } else {
    for (int side : {0, 1}) values[side] = &evidence.profile->counters[side];
  }
  for (int side : {0, 1}) {
    const auto found = values[side]->find(witness.name);
    if (found == values[side]->end()) {
      result.why_not = fmt::format("the {} side did not report {}", side_name(side), witness.name);
      return result;
    }
    (side == kBaseline ? result.baseline : result.optimized) = found->second;
  }
  result.collected = true;
  const double high = falls ? result.baseline : result.optimized;
  const double low = falls ? result.optimized : result.baseline;
  // Falling to zero is a move of any factor.
  result.moved = high > 0 && high >= witness.factor * low;
  return result;
}

void add_metrics(Result& result, const Target& target, const Knobs& knobs,
                 const Evidence& evidence) {
  for (const Metric& metric : target.pair.metrics) {
    MetricResult value{.unit = metric.unit};
    bool known = true;
    for (int side : {0, 1}) {
      double& slot = side == kBaseline ? value.baseline : value.optimized;
      const SideResult& times = side == kBaseline ? *result.baseline : *result.optimized;
      if (metric.from == Metric::From::rate) {
        slot = metric.amount(knobs) / (times.ns.median * 1e-9);
      } else if (metric.from == Metric::From::error) {
        for (const Measurement& m : evidence.processes) slot = std::max(slot, m.side_error[side]);
      } else {
        const auto& facts = evidence.processes.front().facts[side];
        const auto fact = facts.find(metric.name);
        known = known && fact != facts.end();
        if (fact != facts.end()) slot = fact->second;
      }
    }
    if (known) result.metrics[metric.name] = value;
  }
}

/// How much better the goal metric got, as a ratio above 1.
double metric_gain(const Result& result, const Target& target) {
  const auto metric = result.metrics.find(target.pair.goal_metric);
  if (metric == result.metrics.end()) return 0;
  const auto declared = std::ranges::find_if(
      target.pair.metrics, [&](const Metric& m) { return m.name == target.pair.goal_metric; });
  const auto [baseline, optimized, unit] = metric->second;
  const bool lower = declared->better == Metric::Better::lower;
  const double worse = lower ? baseline : optimized, better = lower ? optimized : baseline;
  return better > 0 ? worse / better : (worse > 0 ? INFINITY : 1);
}

void decide(Result& result, const Target& target) {
  const Estimate& speedup = *result.speedup;
  const double bar = target.pair.bar;
  result.status = Status::passed;
  if (target.pair.goal == Goal::speed) {
    if (speedup.lo <= bar) {
      result.status = Status::no_gain;
      result.reason = fmt::format("speedup {:.3f} [{:.3f}, {:.3f}] does not clear {:.2f}",
                                  speedup.median, speedup.lo, speedup.hi, bar);
    }
  } else {
    const double gain = metric_gain(result, target);
    if (gain <= bar) {
      result.status = Status::no_gain;
      result.reason = fmt::format("{} improves {:.3f}x, which does not clear {:.2f}",
                                  target.pair.goal_metric, gain, bar);
    } else if (speedup.hi < kSpeedGivenUp) {
      result.status = Status::no_gain;
      result.reason = fmt::format("{} improves {:.2f}x, but at {:.2f}x the speed",
                                  target.pair.goal_metric, gain, speedup.median);
    }
  }
  if (result.status == Status::passed && result.witness.collected && !result.witness.moved) {
    result.status = Status::no_gain;
    result.reason = fmt::format(
        "the witness did not move: {} went from {:.4g} to {:.4g}, but {} was claimed, so the "
        "technique is not what made the difference",
        result.witness.name, result.witness.baseline, result.witness.optimized,
        result.witness.expected);
  }
}

/// A CPU side that uses the pool says so by the fact "threads".
Threads threads_of(const Evidence& evidence, SideIndex side) {
  const auto& facts = evidence.processes.front().facts[side];
  const auto threads = facts.find("threads");
  return threads != facts.end() && threads->second > 1 ? Threads::all : Threads::one;
}

// DRAM traffic below this share of the declared bytes means the cost claims bytes that caches held
// back.
constexpr double kMinTraffic = 0.85;

/// Compares the bytes a pair declares with what the DRAM counters saw.
void cross_check_traffic(Result& result, const Cost& cost) {
  const auto read = result.counters.find("dram__bytes_read.sum");
  const auto write = result.counters.find("dram__bytes_write.sum");
  const double declared = cost.read_bytes + cost.write_bytes;
  if (read == result.counters.end() || write == result.counters.end() || declared <= 0) return;
  if (cost.level != Cost::Level::dram) return;
  MetricResult traffic{.baseline = (read->second.baseline + write->second.baseline) / declared,
                       .optimized = (read->second.optimized + write->second.optimized) / declared,
                       .unit = "x declared bytes"};
  if (traffic.optimized < kMinTraffic && result.bound_by == "memory") {
    result.notes.push_back(fmt::format(
        "DRAM moved only {:.2f} of the declared bytes: caches held the rest, so the percentage of "
        "the ceiling overstates",
        traffic.optimized));
  }
  result.metrics["dram_traffic"] = std::move(traffic);
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

}  // namespace

Result describe(const Target& target, BackendKind backend, const Knobs& knobs) {
  Result result;
  result.id = target.id();
  result.backend = backend;
  result.kind = target.pair.kind == Kind::comparison ? "comparison" : "demonstration";
  result.chapter = target.source.chapter;
  result.technique = target.pair.technique;
  result.title = target.pair.title;
  const auto& facts = backend == BackendKind::cpu ? target.pair.cpu : target.pair.cuda;
  result.claim = facts ? facts->claim : "";
  result.goal = name_of(target.pair.goal);
  result.knobs = knobs.all();
  return result;
}

void judge(Result& result, const Target& target, const Knobs& knobs, const Evidence& evidence) {
  merge_conditions(result, evidence.processes);
  for (const Measurement& m : evidence.processes) {
    result.verification.checks += m.verification.checks;
    result.verification.checked_percent =
        std::min(result.verification.checked_percent, m.verification.checked_percent);
    if (m.verification.max_error >= result.verification.max_error) {
      result.verification.max_error = m.verification.max_error;
      result.verification.bound = m.verification.bound;
    }
  }
  const auto too_hot = [](const Measurement& m) {
    return !m.ok && m.blocks.empty() && m.conditions.dropped_blocks > 0;
  };
  std::vector<ProcessBlocks> blocks;
  for (const Measurement& m : evidence.processes) {
    if (!m.ok && !too_hot(m)) {
      result.status = Status::wrong;
      result.reason = m.reason;
      return;
    }
    if (m.ok) blocks.push_back(m.blocks);
  }
  if (blocks.empty()) {
    result.status = Status::skipped;
    result.reason = evidence.processes.front().reason;
    return;
  }
  const Cost cost = target.facts(result.backend).cost(knobs);
  result.speedup = estimate(blocks, [](const Block& b) { return b.ratio(); }, 17);
  result.baseline = side_result(blocks, kBaseline, cost);
  result.optimized = side_result(blocks, kOptimized, cost);
  result.samples = result.baseline->samples + result.optimized->samples;
  if (evidence.ceilings) {
    const RooflinePoint slow = place(cost, result.baseline->ns.median, *evidence.ceilings,
                                     threads_of(evidence, kBaseline));
    const RooflinePoint fast = place(cost, result.optimized->ns.median, *evidence.ceilings,
                                     threads_of(evidence, kOptimized));
    result.baseline->ceiling_percent = slow.percent;
    result.optimized->ceiling_percent = fast.percent;
    result.ceiling_percent = fast.percent;
    result.bound_by = fast.bound_by;
    result.intensity = fast.intensity;
  }
  add_metrics(result, target, knobs, evidence);
  if (evidence.profile) {
    for (const auto& [name, value] : evidence.profile->counters[kBaseline]) {
      const auto other = evidence.profile->counters[kOptimized].find(name);
      if (other != evidence.profile->counters[kOptimized].end()) {
        result.counters[name] = {.baseline = value, .optimized = other->second, .unit = ""};
      }
    }
  }
  cross_check_traffic(result, cost);
  result.witness = judge_witness(target.facts(result.backend).witness, evidence);
  decide(result, target);
}

}  // namespace gauntlet::lab::inline run
