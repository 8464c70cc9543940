#include "study/fidelity/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "stats/change.h"

namespace gauntlet::study::inline fidelity {
namespace {

using stats::Gain;

constexpr double kShareThatCounts = 0.25;

std::string in_words(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  }
  return text;
}

std::string interval(const stats::Interval& ratio) {
  return fmt::format("{:.2f}× [{:.2f}, {:.2f}]", ratio.value, ratio.lo, ratio.hi);
}

double excess(const StepPart& part) { return part.us - part.floor_us; }

}  // namespace

const char* name_of(Sign sign) {
  return sign == Sign::same ? "same" : sign == Sign::undecided ? "undecided" : "opposite";
}

SignCheck check_sign(const Company& company) {
  const Gain alone = stats::gain(company.worth), layer = stats::gain(company.layer_gain);
  if (alone == layer) {
    return {Sign::same,
            fmt::format("{} in company too: {}", words_of(alone), interval(company.worth))};
  }
  std::string why;
  if (!company.others.empty()) {
    why = fmt::format("layer {} also brought {}, and its {} is theirs together", company.layer,
                      in_words(company.others), interval(company.layer_gain));
  } else if (alone == Gain::no_gain || layer == Gain::no_gain) {
    why = fmt::format("one of the two intervals holds 1: {} when it came, {} in company",
                      interval(company.layer_gain), interval(company.worth));
  } else {
    why = fmt::format("what came after it changed its worth, from {} to {}",
                      interval(company.layer_gain), interval(company.worth));
  }
  if (!company.plan_without.empty()) {
    why += fmt::format("; without it the plan reads {}", in_words(company.plan_without));
  }
  const bool undecided = alone == Gain::no_gain || layer == Gain::no_gain;
  return {undecided ? Sign::undecided : Sign::opposite,
          fmt::format("{} in its layer, {} in company: {}", words_of(layer), words_of(alone), why)};
}

const char* name_of(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::memory:
      return "memory";
    case Bottleneck::compute:
      return "compute";
    case Bottleneck::launch:
      return "launch";
    case Bottleneck::host:
      return "host";
  }
  fail("no such bottleneck");
}

std::vector<std::string> targets_for(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::memory:
      return {"ch07:vectorized_copy", "ch07:streaming_stores", "ch07:async_prefetch",
              "ch08:occupancy_for_latency"};
    case Bottleneck::compute:
      return {"ch01:tf32_matmul", "ch07:tiled_matmul", "ch08:extreme_ilp", "ch08:loop_unrolling"};
    case Bottleneck::launch:
      return {"ch01:batched_gemm", "ch01:sync_every_call"};
    case Bottleneck::host:
      return {"ch01:sync_every_call", "ch01:microbatch_goodput"};
  }
  fail("no such bottleneck");
}

Diagnosis diagnose(const std::vector<StepPart>& parts, double idle_us, double host_us) {
  check(!parts.empty(), "a step without parts");
  double busy = 0, floors = 0, memory = 0;
  for (const StepPart& part : parts) {
    busy += part.us;
    floors += part.floor_us;
    if (part.bound_by != "compute") memory += part.floor_us;
  }
  const double all = busy + idle_us + host_us;
  const auto worst = std::ranges::max_element(parts, {}, excess);
  Diagnosis found{
      .bottleneck = memory >= floors - memory ? Bottleneck::memory : Bottleneck::compute,
      .part = worst->name,
      .sentence = {},
      .targets = {}};
  if (host_us >= kShareThatCounts * all) {
    found.bottleneck = Bottleneck::host;
    found.sentence = fmt::format("{:.0f}% of a step is spent on the host, outside the model",
                                 100 * host_us / all);
  } else if (idle_us >= kShareThatCounts * all) {
    found.bottleneck = Bottleneck::launch;
    found.sentence = fmt::format("{:.0f}% of a step passes between kernels", 100 * idle_us / all);
  } else if (floors > 0) {
    found.sentence = fmt::format(
        "a step takes {:.0f} µs where {} allows {:.0f} µs; {} holds the most to gain, {:.0f} µs "
        "above its limit of {:.0f} µs",
        all, name_of(found.bottleneck), floors, worst->name, excess(*worst), worst->floor_us);
  } else {
    found.sentence = fmt::format(
        "{} takes the most, {:.0f} µs of {:.0f} µs; without measured "
        "ceilings its limit is unknown",
        worst->name, worst->us, all);
  }
  found.targets = targets_for(found.bottleneck);
  return found;
}

}  // namespace gauntlet::study::inline fidelity
