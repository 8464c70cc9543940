// What a study says of each layer, of all of them, and of each option among the others.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/bench/energy_use.h"
#include "study/fidelity/rules.h"
#include "study/ladder.h"
#include "study/results/gain.h"
#include "study/results/measured.h"
#include "study/serving.h"

namespace gauntlet::study::inline results {

/// What a layer was held against.
enum class VerifiedBy { reference, tokens, choices, perplexity };
const char* name_of(VerifiedBy by);

/// Tokens, or choices with replayed experts, that had to be equal.
struct EqualChoices {
  std::int64_t compared = 0;
  std::int64_t of = 0;
};
/// Choices of experts that were other ones.
struct ReplacedExperts {
  std::int64_t replaced = 0;
  std::int64_t experts = 0;
};
struct PerplexityChange {
  double percent = 0;
  double allowed_percent = 0;
};

struct Verification {
  VerifiedBy by = VerifiedBy::reference;
  bool verified = false;
  std::string sentence;
  std::optional<double> perplexity;  // none of what is served
  std::optional<std::int64_t> scored_tokens;
  std::optional<PerplexityChange> change;
  std::optional<EqualChoices> equal;
  std::optional<ReplacedExperts> replaced;
  std::optional<std::int64_t> choices;  // that were judged besides tokens
  std::string not_covered;
};

struct ServingSides {
  ServeFigures before, after;
};

struct LayerResult {
  int index = 0;
  std::string name;
  std::string title;
  std::vector<std::string> options;
  std::vector<std::string> targets;
  Stage stage = Stage::engine;
  Measured<Verification> verification;
  Measured<EnergyUse> energy;
  std::int64_t kv_bytes_per_position = 0;  // of the model's layers that see all positions
  std::string gap;                         // why there are no figures
  std::optional<Gain> gain;                // over the layer before
  std::optional<ServingSides> serving;     // of a serving layer
  std::optional<EngineFigures> engine;     // of any other
};

/// The whole stack against the baseline.
struct Total {
  Gain gain;
  EngineFigures engine;
};

/// The whole stack against itself without an option.
struct Worth {
  Gain gain;
  std::vector<std::string> plan_without;  // lines that changed
  std::optional<SignCheck> sign;          // beside its layer's gain, where there is one
};
struct OptionWorth {
  std::string option;
  std::string title;
  int layer = 0;
  Measured<Worth> worth;
};

}  // namespace gauntlet::study::inline results
