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

/// Items that run together, and the rows wanted of them.
struct StepPart {
  std::vector<std::int32_t> items;  // indices into the step's
  std::vector<std::int32_t> rows;   // likewise, in the order of this part's tokens
  int first_row = 0;                // of this part among those of all parts
  StepShape shape;
  int real_tokens = 0;
};

/// One part; where bits must not depend on the batch, sequences that decode and prompts apart.
std::vector<StepPart> cut_step(const StepData& step, Determinism determinism,
                               const DecodeLimits& limits, std::int64_t vocab);

/// What padding is given: pages that belong to nobody.
struct PaddingPages {
  std::int32_t of_group[kNumKvGroups] = {};
};

/// Writes a part's inputs. `late_places`: where the choice of each row of the step before lies.
void fill_inputs(const StepData& step, const StepPart& part, const StepPointers& at,
                 const PaddingPages& padding, const std::vector<std::int32_t>& late_places);

/// Where the choice of each row lies, when parts put theirs one after the other.
std::vector<std::int32_t> choice_places(const StepData& step, const std::vector<StepPart>& parts);

}  // namespace gauntlet::engine::cuda
