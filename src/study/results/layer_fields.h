// How the layers' part of results.json looks. Included by results_json.cc alone.
#pragma once
#include <array>

#include "study/results/cell_fields.h"
#include "study/results/json_form.h"
#include "study/results/layer_result.h"

namespace gauntlet::study::inline results {

template <>
inline constexpr std::array kAllOf<stats::Gain>{stats::Gain::gain, stats::Gain::no_gain,
                                                stats::Gain::loss};
template <>
inline constexpr std::array kAllOf<VerifiedBy>{VerifiedBy::reference, VerifiedBy::tokens,
                                               VerifiedBy::choices, VerifiedBy::perplexity};
template <>
inline constexpr std::array kAllOf<Sign>{Sign::same, Sign::undecided, Sign::opposite};
template <>
inline constexpr std::array kAllOf<Stage>{Stage::engine, Stage::serving};

template <class Io>
void fields(Io& io, Of<Io, Ratio>& ratio) {
  io("ratio", ratio.ratio);
  io("label", ratio.label);
}

template <class Io>
void fields(Io& io, Of<Io, WorkloadGain>& workload) {
  io("name", workload.name);
  io.beside(workload.gain);
  io.absent_when_empty("beside", workload.beside);
}

template <class Io>
void fields(Io& io, Of<Io, Gain>& gain) {
  io.beside(gain.all);
  io("workloads", gain.workloads);
  io.later("conditions", gain.conditions);
}

template <class Io>
void fields(Io& io, Of<Io, Figure>& figure) {
  io("name", figure.name);
  io("batch", figure.batch);
  io("context", figure.context);
  io("tokens", figure.tokens);
  io("ms", figure.ms);
  io("tok_s", figure.tok_s);
  io("percent_of_limit", figure.percent_of_limit);
  io.null_when_empty("bound_by", figure.bound_by);
  io("repetitions", figure.repetitions);
}

template <class Io>
void fields(Io& io, Of<Io, EngineFigures>& engine) {
  io("plan", engine.plan);
  io("weight_bytes", engine.weight_bytes);
  io.null_when_empty("read_from", engine.read_from);
  io("figures", engine.figures);
  io.absent_when_empty("ttft_ms", engine.ttft_ms);
  io.absent_when_empty("tpot_ms", engine.tpot_ms);
}

template <class Io>
void fields(Io& io, Of<Io, EqualChoices>& equal) {
  io("compared", equal.compared);
  io("of", equal.of);
}

template <class Io>
void fields(Io& io, Of<Io, ReplacedExperts>& replaced) {
  io("replaced", replaced.replaced);
  io("experts", replaced.experts);
}

template <class Io>
void fields(Io& io, Of<Io, PerplexityChange>& change) {
  io("change_percent", change.percent);
  io("allowed_percent", change.allowed_percent);
}

template <class Io>
void fields(Io& io, Of<Io, Verification>& verification) {
  io("by", verification.by);
  io("verified", verification.verified);
  io("sentence", verification.sentence);
  io("perplexity", verification.perplexity);
  io.absent_when_empty("scored_tokens", verification.scored_tokens);
  io.beside_where("change_percent", verification.change);
  io.beside_where("compared", verification.equal);
  io.beside_where("replaced", verification.replaced);
  io.absent_when_empty("choices", verification.choices);
  io.absent_when_empty("not_covered", verification.not_covered);
}

template <class Io>
void fields(Io& io, Of<Io, ServingSides>& sides) {
  io("before", sides.before);
  io("after", sides.after);
}

template <class Io>
void fields(Io& io, Of<Io, LayerResult>& layer) {
  io("index", layer.index);
  io("name", layer.name);
  io("title", layer.title);
  io("options", layer.options);
  io("targets", layer.targets);
  io("stage", layer.stage);
  io("verification", layer.verification);
  io.later("energy", layer.energy);
  io("kv_bytes_per_position", layer.kv_bytes_per_position);
  io.absent_when_empty(kGap, layer.gap);
  io.absent_when_empty("gain", layer.gain);
  io.absent_when_empty("serving", layer.serving);
  io.beside_where("figures", layer.engine);
}

template <class Io>
void fields(Io& io, Of<Io, Total>& total) {
  io("gain", total.gain);
  io.beside(total.engine);
}

template <class Io>
void fields(Io& io, Of<Io, SignCheck>& check) {
  io("sign", check.sign);
  io("sentence", check.sentence);
}

template <class Io>
void fields(Io& io, Of<Io, Worth>& worth) {
  io("gain", worth.gain);
  io("plan_without", worth.plan_without);
  io.beside_where("sign", worth.sign);
}

template <class Io>
void fields(Io& io, Of<Io, OptionWorth>& option) {
  io("option", option.option);
  io("title", option.title);
  io("layer", option.layer);
  io.beside(option.worth);
}

}  // namespace gauntlet::study::inline results
