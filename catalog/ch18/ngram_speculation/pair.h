// How many steps does a text save that has said the same before, and what does looking cost where
// it has not?
#pragma once
#include <cstdint>
#include <memory>

#include "engine/measure/answers.h"
#include "lab/author/side.h"

namespace gauntlet::ch18::ngram_speculation {

struct Params {
  std::shared_ptr<engine::Answerer> model;  // of all sets and both sides
  engine::Questions questions;              // prompts: [requests, prompt_tokens]
  std::int32_t* answers;                    // [requests, new_tokens]
  std::int64_t drafts;                      // guesses of one request in one step at most
};

/// Answers through the service, with what the service counts meanwhile as outcomes.
lab::Side counted_answers(const Params& p, const engine::Speculation& speculation);

}  // namespace gauntlet::ch18::ngram_speculation
