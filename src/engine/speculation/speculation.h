// What a service is told of guessing: who does, and how far.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/speculation/budget.h"
#include "engine/speculation/drafter.h"

namespace gauntlet::engine::inline speculation {

struct Speculation {
  std::shared_ptr<Drafter> drafter = {};  // none: a step makes one token of a request
  /// Asked where they pay better than the first, or it has no guess.
  std::vector<std::shared_ptr<Drafter>> others = {};
  std::int64_t max_drafts = 7;  // of one request in one step
  DraftLengths lengths = DraftLengths::measured;
  TreeShape tree = {};  // of those that fan out

  std::vector<std::shared_ptr<Drafter>> all() const {
    std::vector<std::shared_ptr<Drafter>> drafters = others;
    if (drafter) drafters.insert(drafters.begin(), drafter);
    return drafters;
  }

  /// "ngram or experts, up to 7 guesses a step, as many as pay"; "off".
  std::string describe() const {
    if (!drafter) return "off";
    std::string names(drafter->name());
    for (const auto& other : others) names += " or " + std::string(other->name());
    const std::string shape = tree.is_chain() ? "" : " in " + tree.describe();
    return names + ", up to " + std::to_string(max_drafts) + " guesses a step" + shape +
           (lengths == DraftLengths::measured ? ", as many as pay" : ", always as many");
  }
};

}  // namespace gauntlet::engine::inline speculation
