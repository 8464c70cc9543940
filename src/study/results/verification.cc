// Whether a layer is true: by perplexity, by its tokens, or by its choices with replayed experts.
#include <fmt/format.h>

#include <cmath>

#include "study/cells.h"
#include "study/fidelity/layer_check.h"
#include "study/results/assemble_parts.h"

namespace gauntlet::study::inline results {
namespace {

Verification by_reference(const TextScore& own) {
  return {.by = VerifiedBy::reference,
          .verified = true,
          .sentence = fmt::format("the reference of all others: perplexity {:.4f} over {} tokens",
                                  own.perplexity, own.scored_tokens),
          .perplexity = own.perplexity,
          .scored_tokens = own.scored_tokens};
}

Verification by_perplexity(const TextScore& before, const TextScore& own, double allowed) {
  const double change = 100 * (own.perplexity / before.perplexity - 1);
  return {.by = VerifiedBy::perplexity,
          .verified = std::abs(change) <= allowed,
          .sentence = fmt::format("perplexity {:.4f}, {:+.2f}% from {:.4f}; {:.1f}% is allowed",
                                  own.perplexity, change, before.perplexity, allowed),
          .perplexity = own.perplexity,
          .scored_tokens = own.scored_tokens,
          .change = PerplexityChange{.percent = change, .allowed_percent = allowed}};
}

std::optional<double> perplexity_of(const CheckedLayer& layer) {
  if (!layer.score) return {};
  return layer.score->perplexity;
}

/// The second look at a layer whose tokens differ.
Verification by_choices(const StudyFacts& facts, const CheckedLayer& own,
                        const Agreement& agreement) {
  const auto& [replay, where] = *own.replayed;
  Verification found{
      .by = VerifiedBy::choices,
      .verified = replay.wrong.empty(),
      .perplexity = perplexity_of(own),
      .equal = EqualChoices{.compared = replay.compared, .of = replay.of},
      .replaced = ReplacedExperts{.replaced = replay.replaced, .experts = replay.experts}};
  if (!found.verified) {
    found.sentence = fmt::format("wrong: {}; with the experts of the layer before replayed, {}",
                                 agreement.difference, replay.wrong);
    return found;
  }
  found.sentence = fmt::format(
      "the same {} choices with the experts of the layer before replayed: undecided router at {} "
      "({} of {} choices of experts replaced)",
      replay.compared, where, replay.replaced, replay.experts);
  found.not_covered =
      fmt::format("a watched step runs without {}: those are covered up to where the tokens differ",
                  unwatched_parts(facts.ladder.backend));
  return found;
}

/// Of a layer with the same tokens, too few to say much.
void add_choices(const Replay& replay, Verification& found) {
  found.verified = replay.wrong.empty();
  found.replaced = {.replaced = replay.replaced, .experts = replay.experts};
  found.choices = replay.compared;
  found.sentence =
      found.verified
          ? fmt::format(
                "{}; as these are few, with the experts of the layer before replayed, too: "
                "the same {} of {} choices, the others being within a near tie",
                found.sentence, replay.compared, replay.of)
          : "wrong: with the experts of the layer before replayed, " + replay.wrong;
}

Verification by_tokens(const StudyFacts& facts, const CheckedLayer& before,
                       const CheckedLayer& own) {
  const double least_margin = facts.ladder.least_margin;
  const Agreement agreement = compare(before.run, own.run.tokens, least_margin);
  if (!agreement.agrees && own.replayed) return by_choices(facts, own, agreement);
  Verification found{
      .by = VerifiedBy::tokens,
      .verified = agreement.agrees,
      .sentence = agreement.agrees
                      ? fmt::format("the same {} tokens as the layer before ({} of {} come after a "
                                    "choice within {} of a tie and are not judged)",
                                    agreement.compared, agreement.of - agreement.compared,
                                    agreement.of, least_margin)
                      : "wrong: " + agreement.difference,
      .perplexity = perplexity_of(own),
      .equal = EqualChoices{.compared = agreement.compared, .of = agreement.of}};
  if (own.replayed) add_choices(own.replayed->replay, found);
  return found;
}

}  // namespace

const char* name_of(VerifiedBy by) {
  switch (by) {
    case VerifiedBy::reference:
      return "reference";
    case VerifiedBy::tokens:
      return "tokens";
    case VerifiedBy::choices:
      return "choices";
    case VerifiedBy::perplexity:
      return "perplexity";
  }
  return "";
}

Measured<Verification> verification_of(const StudyFacts& facts, CellReader& cells, int layer) {
  Measured<Verification> not_scored{.value = {}, .gap = "no text was scored"};
  const auto own = cells.read<CheckedLayer>(keys::verify(layer));
  if (!own) return {.value = {}, .gap = own.gap};
  if (layer == 0) {
    return own->score ? Measured<Verification>{by_reference(*own->score), {}} : not_scored;
  }
  const auto before = cells.read<CheckedLayer>(keys::verify(layer - 1));
  if (!before) return {};
  const double allowed = facts.ladder.allowed_percent(layer);
  if (allowed == 0) return {by_tokens(facts, *before, *own), {}};
  if (!before->score || !own->score) return not_scored;
  return {by_perplexity(*before->score, *own->score, allowed), {}};
}

}  // namespace gauntlet::study::inline results
