// How the sweeps and the split of a step look in results.json. Included by results_json.cc alone.
#pragma once
#include <array>

#include "study/results/cell_fields.h"
#include "study/results/json_form.h"
#include "study/results/study_results.h"

namespace gauntlet::study::inline results {

template <>
inline constexpr std::array kAllOf<Bottleneck>{Bottleneck::memory, Bottleneck::compute,
                                               Bottleneck::launch, Bottleneck::host};

template <class Io>
void fields(Io& io, Of<Io, StepSpeed>& speed) {
  io("tpot_ms", speed.tpot_ms);
  io("tok_s", speed.tok_s);
  io("percent_of_limit", speed.percent_of_limit);
  io.null_when_empty("bound_by", speed.bound_by);
  io("experts_per_layer", speed.experts_per_layer);
}

template <class Io>
void fields(Io& io, Of<Io, BatchPoint>& point) {
  io("batch", point.batch);
  io("context", point.context);
  io.beside(point.speed);
}

template <class Io>
void fields(Io& io, Of<Io, PromptSpeed>& speed) {
  io("ttft_ms", speed.ttft_ms);
  io("tok_s", speed.tok_s);
  io("percent_of_limit", speed.percent_of_limit);
}

template <class Io>
void fields(Io& io, Of<Io, PromptPoint>& point) {
  io("length", point.length);
  io("batch", point.batch);
  io.beside(point.speed);
}

template <class Io>
void fields(Io& io, Of<Io, StepPercentiles>& steps) {
  io("p50_ms", steps.p50_ms);
  io("p95_ms", steps.p95_ms);
  io("steps", steps.steps);
}

template <class Io>
void fields(Io& io, Of<Io, ContextPoint>& point) {
  io("context", point.context);
  io("batch", point.batch);
  io.beside(point.steps);
}

template <class Io>
void fields(Io& io, Of<Io, PrecisionFigures>& figures) {
  io.beside(figures.speed);
  io.beside(figures.score);
  io("weight_bytes", figures.weight_bytes);
}

template <class Io>
void fields(Io& io, Of<Io, PrecisionPoint>& point) {
  io("on", point.on);
  io.beside(point.figures);
}

template <class Io>
void fields(Io& io, Of<Io, LoadPoint>& point) {
  io("of_saturation", point.of_saturation);
  io.beside(point.figures);
}

template <class Io>
void fields(Io& io, Of<Io, Sweeps>& sweeps) {
  io("batch", sweeps.batch);
  io("prompts", sweeps.prompts);
  io("context", sweeps.context);
  io("precision", sweeps.precision);
  io("saturation", sweeps.saturation);
  io("load", sweeps.load);
}

template <class Io>
void fields(Io& io, Of<Io, LimitedPart>& part) {
  io.beside(part.part);
  io("percent_of_limit", part.percent_of_limit);
}

template <class Io>
void fields(Io& io, Of<Io, Diagnosis>& found) {
  io("kind", found.bottleneck);
  io("part", found.part);
  io("sentence", found.sentence);
  io("targets", found.targets);
}

template <class Io>
void fields(Io& io, Of<Io, TimeResult>& time) {
  fields_of_step<Io, LimitedPart>(io, time.step);
  io("bottleneck", time.bottleneck);
}

}  // namespace gauntlet::study::inline results
