// A step may verify several ways in which a text could go on: does that save more steps than a
// single chain of guesses, and what do the rows of the other ways cost?
#pragma once
#include <cstdint>
#include <memory>

#include "engine/measure/answers.h"
#include "lab/author/side.h"

namespace gauntlet::ch18::tree_verification {

struct Params {
  std::shared_ptr<engine::Answerer> model;  // of all sets and both sides
  engine::Questions questions;              // prompts: [requests, prompt_tokens]
  std::int32_t* answers;                    // [requests, new_tokens]
  std::int64_t depth;                       // guesses of a chain, and of each path of a tree
  std::int64_t width;                       // guesses that follow one, where a tree branches
  std::int64_t guesses;                     // of a tree, in all: the likeliest
};

/// Answers through the service, with what the service counts meanwhile as outcomes.
lab::Side counted_answers(const Params& p, const engine::Speculation& speculation);

}  // namespace gauntlet::ch18::tree_verification
