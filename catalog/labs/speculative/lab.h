// Who should guess what a model says next, when all guesses are verified by the same step: the text
// itself, a smaller model, or a head on the model's own residuals?
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/measure/answers.h"
#include "lab/author/side.h"

namespace gauntlet::labs::speculative {

struct Params {
  std::shared_ptr<engine::Answerer> model;  // of all sets and rungs
  engine::Questions questions;              // prompts: [requests, prompt_tokens]
  std::int32_t* answers;                    // [requests, new_tokens]
  std::int64_t drafts;                      // guesses of one request in one step
};

/// Chains of as many guesses as there may be, by one drafter, and by the others where it has none.
engine::Speculation chains(const Params& p, std::shared_ptr<engine::Drafter> drafter,
                           std::vector<std::shared_ptr<engine::Drafter>> others = {});

/// Answers through the service, with what it counts meanwhile as outcomes.
lab::Side counted_answers(const Params& p, const engine::Speculation& speculation);

}  // namespace gauntlet::labs::speculative
