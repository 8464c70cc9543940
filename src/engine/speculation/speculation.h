// What a service is told of guessing: who does, and how far.
#pragma once
#include <memory>
#include <string>

#include "engine/speculation/budget.h"
#include "engine/speculation/drafter.h"

namespace gauntlet::engine::inline speculation {

struct Speculation {
  std::shared_ptr<Drafter> drafter = {};  // none: a step makes one token of a request
  std::int64_t max_drafts = 7;            // of one request in one step
  DraftLengths lengths = DraftLengths::measured;

  /// "ngram, up to 7 guesses a step"; "off".
  std::string describe() const {
    if (!drafter) return "off";
    return std::string(drafter->name()) + ", up to " + std::to_string(max_drafts) +
           " guesses a step" +
           (lengths == DraftLengths::measured ? ", as many as pay" : ", always as many");
  }
};

}  // namespace gauntlet::engine::inline speculation
