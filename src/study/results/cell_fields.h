// How the journal's cells look in JSON. Included by cell_json.cc and results_json.cc alone.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "study/bench/duel.h"
#include "study/bench/energy_use.h"
#include "study/bench/measurements.h"
#include "study/fidelity/layer_check.h"
#include "study/fidelity/router.h"
#include "study/results/json_form.h"
#include "study/serving.h"
#include "study/time_split.h"

namespace gauntlet::study::inline results {

/// Of two sides, four times each: a, b, b, a.
template <>
struct JsonForm<stats::Block> {
  using Form = std::array<double, 4>;
  static Form to(const stats::Block& block) {
    if (block.ns.empty()) return {};
    return {block.ns[0][0], block.ns[1][0], block.ns[1][1], block.ns[0][1]};
  }
  static stats::Block from(const Form& four) {
    return {.ns = {{four[0], four[3]}, {four[1], four[2]}}};
  }
};

struct KnownLimit {
  double seconds = 0;
  std::string bound_by;
};
template <class Io>
void fields(Io& io, Of<Io, KnownLimit>& limit) {
  io("seconds", limit.seconds);
  io("bound_by", limit.bound_by);
}
/// Null where it is unknown.
template <>
struct JsonForm<engine::SpeedLimit> {
  using Form = std::optional<KnownLimit>;
  static Form to(const engine::SpeedLimit& limit) {
    if (limit.bound_by.empty()) return {};
    return KnownLimit{.seconds = limit.seconds, .bound_by = limit.bound_by};
  }
  static engine::SpeedLimit from(const Form& limit) {
    if (!limit) return {};
    return {.seconds = limit->seconds, .bound_by = limit->bound_by};
  }
};

template <class Io>
void fields(Io& io, Of<Io, lab::Conditions>& conditions) {
  std::optional<std::array<double, 2>> clocks;  // least and most
  if (conditions.sm_clock_mhz_max > 0) {
    clocks = {conditions.sm_clock_mhz_min, conditions.sm_clock_mhz_max};
  }
  io("dropped_blocks", conditions.dropped_blocks);
  io("sm_clock_mhz", clocks);
  io("throttle_reasons", conditions.throttle_reasons);
  if constexpr (Io::kReads) {
    if (clocks) {
      conditions.sm_clock_mhz_min = clocks->front();
      conditions.sm_clock_mhz_max = clocks->back();
    }
  }
}

template <class Io>
void fields(Io& io, Of<Io, DuelSide>& side) {
  io("plan", side.plan);
  io("weight_bytes", side.weight_bytes);
  io.null_when_empty("read_from", side.read_from);
}

template <class Io>
void fields(Io& io, Of<Io, Bout>& bout) {
  auto& test = bout.workload.test;
  io("name", bout.workload.name);
  io("batch", test.batch);
  io("context", test.context);
  io("tokens", test.tokens);
  io("ns", bout.blocks);
  io("bytes", bout.bytes);
  io("limits", bout.limits);
  io("experts_per_layer", bout.experts_per_layer);
  io.demand(!bout.blocks.empty(), "ns", "is empty");
  if constexpr (Io::kReads) {
    test.kind = bout.workload.is_prompt() ? engine::SpeedKind::prefill : engine::SpeedKind::decode;
  }
}

template <class Io>
void fields(Io& io, Of<Io, Duel>& duel) {
  io("a", duel.a);
  io("b", duel.b);
  io("bouts", duel.bouts);
  io.demand(!duel.bouts.empty(), "bouts", "is empty");
  io.absent_when_empty("conditions", duel.conditions);
}

template <class Io>
void fields(Io& io, Of<Io, Percentiles>& percentiles) {
  io("p50", percentiles.p50);
  io("p95", percentiles.p95);
}

template <class Io>
void fields(Io& io, Of<Io, engine::SpeculationCounts>& guessed) {
  io("steps", guessed.steps);
  io("drafted", guessed.drafted);
  io("accepted", guessed.accepted);
  io("by_position", guessed.by_position);
}

template <class Io>
void fields(Io& io, Of<Io, ServeFigures>& served) {
  io("seconds", served.seconds);
  io("requests", served.requests);
  io("output_tokens", served.output_tokens);
  io("prompt_tokens", served.prompt_tokens);
  io("reused_tokens", served.reused_tokens);
  io("tok_s", served.tok_s);
  io("requests_per_s", served.requests_per_s);
  io("ttft_ms", served.ttft_ms);
  io("tpot_ms", served.tpot_ms);
  io.later("answer_ms", served.answer_ms);
  io("mean_queue", served.mean_queue);
  io("max_queue", served.max_queue);
  io.absent_when_empty("speculation", served.speculation);
}

template <class Io>
void fields(Io& io, Of<Io, ServeDuel::Metric>& metric) {
  io("name", metric.name);
  io.later("beside", metric.beside);
  io("ns", metric.blocks);
  io.demand(!metric.blocks.empty(), "ns", "is empty");
}

template <class Io>
void fields(Io& io, Of<Io, ServeDuel>& duel) {
  io("bouts", duel.metrics);
  io.demand(std::ranges::count(duel.metrics, false, &ServeDuel::Metric::beside) > 0, "bouts",
            "has none that counts");
  io("a", duel.a);
  io("b", duel.b);
  io.absent_when_empty("conditions", duel.conditions);
}

template <class Io>
void fields(Io& io, Of<Io, LoadFigures>& load) {
  io("offered_per_s", load.offered_per_s);
  io.beside(load.served);
}

template <class Io>
void fields(Io& io, Of<Io, LoadTest>& load) {
  io("of_saturation", load.of_saturation);
  io.beside(load.figures);
}

template <class Io>
void fields(Io& io, Of<Io, RepeatedTest>& test) {
  io("batch", test.batch);
  io("context", test.context);
  io("tokens", test.tokens);
  io("ms", test.ms);
  io("limit_ms", test.limit_ms);
  io.null_when_empty("bound_by", test.bound_by);
  io("experts_per_layer", test.experts_per_layer);
  io.demand(!test.ms.empty(), "ms", "is empty");
}

template <class Io>
void fields(Io& io, Of<Io, TextScore>& score) {
  io("perplexity", score.perplexity);
  io("scored_tokens", score.scored_tokens);
}

template <class Io>
void fields(Io& io, Of<Io, PrecisionTest>& test) {
  io.beside(test.speed);
  io.beside(test.score);
  io("on", test.on);
  io("weight_bytes", test.weight_bytes);
}

template <class Io>
void fields(Io& io, Of<Io, StepSamples>& steps) {
  io("context", steps.context);
  io("batch", steps.batch);
  io("ms", steps.ms);
}

template <class Io>
void fields(Io& io, Of<Io, ReplayedLayer>& replayed) {
  io("compared", replayed.replay.compared);
  io("of", replayed.replay.of);
  io("experts", replayed.replay.experts);
  io("replaced", replayed.replay.replaced);
  io("wrong", replayed.replay.wrong);
  io("where", replayed.where);
}

template <class Io>
void fields(Io& io, Of<Io, CheckedLayer>& layer) {
  io("tokens", layer.run.tokens);
  io("margins", layer.run.margins);
  io.beside_where("perplexity", layer.score);
  io.absent_when_empty("replayed", layer.replayed);
}

template <class Io>
void fields(Io& io, Of<Io, EnergyPoint>& point) {
  io("name", point.name);
  io("batch", point.batch);
  io("joules_per_token", point.joules_per_token);
  io("watts", point.watts);
  io("tokens", point.tokens);
}

template <class Io>
void fields(Io& io, Of<Io, EnergyUse>& use) {
  io("source", use.source);
  io("points", use.points);
  io.demand(!use.points.empty(), "points", "is empty");
}

template <class Io>
void fields(Io& io, Of<Io, RouterLoads::Pairs>& pairs) {
  io("layer", pairs.layer);
  io("counts", pairs.counts);
}

template <class Io>
void fields(Io& io, Of<Io, RouterLoads>& router) {
  io("tokens", router.tokens);
  io("layers", router.layers);
  io("experts", router.experts);
  io("experts_per_token", router.experts_per_token);
  io("load", router.load);
  io("imbalance", router.imbalance);
  io("most_uneven_layer", router.most_uneven_layer);
  io("together", router.together);
  io.demand(std::cmp_less(router.most_uneven_layer, router.imbalance.size()) &&
                router.most_uneven_layer >= 0,
            "most_uneven_layer", "is no layer of imbalance");
}

template <class Io>
void fields(Io& io, Of<Io, StepPart>& part) {
  std::optional<double> limit_us;
  if (!part.bound_by.empty()) limit_us = part.floor_us;
  io("name", part.name);
  io("us", part.us);
  io("limit_us", limit_us);
  io.null_when_empty("bound_by", part.bound_by);
  if constexpr (Io::kReads) part.floor_us = limit_us.value_or(0);
}

/// Also of a TimeSplit.
template <class Io, class Part>
void fields_of_step(Io& io, Of<Io, StepTimes<Part>>& step) {
  io("batch", step.batch);
  io("context", step.context);
  io("steps", step.steps);
  io("parts", step.parts);
  io("idle_us", step.idle_us);
  io("host_us", step.host_us);
  io("step_us", step.step_us);
  io("unwatched_step_us", step.unwatched_step_us);
  io.demand(!step.parts.empty(), "parts", "is empty");
}
template <class Io>
void fields(Io& io, Of<Io, TimeSplit>& split) {
  fields_of_step<Io, StepPart>(io, split);
}

template <class Io>
void fields(Io& io, Of<Io, CounterValues>& values) {
  io("steps", values.steps);
  io("counters", values.counters);
}

}  // namespace gauntlet::study::inline results
