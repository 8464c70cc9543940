// Who should guess what a model says next, when all guesses are verified by the same step: the text
// itself, a smaller model, or a head on the model's own residuals?
#pragma once
#include <cstdint>
#include <memory>

#include "engine/measure/answers.h"
#include "lab/author/side.h"

namespace gauntlet::labs::speculative {

struct Params {
  std::shared_ptr<engine::Answerer> model;  // of all sets and rungs
  engine::Questions questions;              // prompts: [requests, prompt_tokens]
  std::int32_t* answers;                    // [requests, new_tokens]
  std::int64_t drafts;                      // guesses of one request in one step
};

/// Answers with as many guesses of this drafter as there may be, or plainly without one; what the
/// service counts meanwhile are the outcomes.
lab::Side guessed_answers(const Params& p, std::shared_ptr<engine::Drafter> drafter);

}  // namespace gauntlet::labs::speculative
