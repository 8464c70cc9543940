// A small model guesses, a large one verifies several guesses in one step: how many steps does that
// save, and what do the guesses cost?
#pragma once
#include <cstdint>
#include <memory>

#include "engine/measure/answers.h"
#include "lab/author/side.h"

namespace gauntlet::ch18::speculative_decoding {

struct Params {
  std::shared_ptr<engine::Answerer> model;  // of all sets and both sides
  engine::Questions questions;              // prompts: [requests, prompt_tokens]
  std::int32_t* answers;                    // [requests, new_tokens]
  std::int64_t drafts;                      // guesses of one request in one step at most
};

/// Answers through the service, with what the service counts meanwhile as outcomes.
lab::Side counted_answers(const Params& p, const engine::Speculation& speculation);

}  // namespace gauntlet::ch18::speculative_decoding
