// Decode steps come in few shapes, so that few graphs serve them all.
#pragma once
#include <vector>

#include "engine/cuda/step_inputs.h"

namespace gauntlet::engine::cuda {

struct DecodeLimits {
  int sequences = 0;  // of a step
  int pages = 0;      // of a sequence
  int rows = 0;       // tokens that decode in one launch, where guesses make them more

  int most_rows() const { return rows > sequences ? rows : sequences; }
};

/// So many sequences run at their own number, or padded to the next of a few.
int padded_batch(int sequences, const DecodeLimits& limits);
/// How wide a table is made for sequences of up to so many pages.
int padded_table(int pages, const DecodeLimits& limits);

/// Every shape in which all sequences sample one token, greedily or not, with nothing masked, and
/// those of one sequence's token with guesses behind it; the shortest contexts first.
std::vector<StepShape> decode_shapes(const DecodeLimits& limits);

}  // namespace gauntlet::engine::cuda
