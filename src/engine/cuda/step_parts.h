// A step's data as launches want it: cut into parts that run together, each with a shape that its
// graph is known by and inputs that lie one after the other. Host code, tested without a GPU.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/cuda/decode_shapes.h"
#include "engine/cuda/step_inputs.h"
#include "engine/options.h"
#include "engine/steps/step_data.h"

namespace gauntlet::engine::cuda {

/// What kernels take for a sequence: an item, or one token of an item that decodes, which sees what
/// the ones before it have just stored. So a guess has the bits of a token that was decoded.
struct StepPiece {
  std::int32_t item = 0;   // index into the step's
  std::int32_t first = 0;  // index into the step's tokens
  std::int32_t num_tokens = 0;
};

/// Pieces that run together, and the rows wanted of them.
struct StepPart {
  std::vector<StepPiece> pieces;   // in the order of tokens
  std::vector<std::int32_t> rows;  // likewise, in the order of this part's tokens
  int first_row = 0;               // of this part among those of all parts
  StepShape shape;
  int real_tokens = 0;
};

/// Parts that a step can have where bits must not depend on the batch: prompts, and decoding items
/// with up to seven guesses each.
constexpr int kMostParts = 9;

/// One part; where bits must not depend on the batch, tokens that decode and prompts apart, with as
/// many of the first in a part as have room. Throws where there are more than kMostParts hold, or
/// where a token is not placed in order: kernels know a token's place by its position.
std::vector<StepPart> cut_step(const StepData& step, Determinism determinism,
                               const DecodeLimits& limits, std::int64_t vocab);

/// What padding is given: pages that belong to nobody.
struct PaddingPages {
  std::int32_t of_group[kNumKvGroups] = {};
};

/// Where what late ids name lies on the device.
struct LatePlaces {
  std::vector<std::int32_t> rows;  // of the step before: each one's choice
  std::int32_t first_guess = 0;    // of a draft head
};

/// Writes a part's inputs.
void fill_inputs(const StepData& step, const StepPart& part, const StepPointers& at,
                 const PaddingPages& padding, const LatePlaces& late_places);

/// Where the choice of each row lies, when parts put theirs one after the other.
std::vector<std::int32_t> choice_places(const StepData& step, const std::vector<StepPart>& parts);

}  // namespace gauntlet::engine::cuda
