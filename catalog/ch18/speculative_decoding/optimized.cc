// A smaller model with the same tokens guesses a few ahead, and a step verifies all of them.
#include "catalog/ch18/speculative_decoding/pair.h"

namespace gauntlet::ch18::speculative_decoding::cpu {

lab::Side optimized(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, {.drafter = p.model->model_drafter("gauntlet-draft"),
                             .max_drafts = p.drafts,
                             .lengths = engine::DraftLengths::fixed});
}

}  // namespace gauntlet::ch18::speculative_decoding::cpu
