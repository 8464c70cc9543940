// A head guesses a chain, each guess after the one before it; a wrong one takes the rest along.
#include "catalog/ch18/tree_verification/pair.h"

namespace gauntlet::ch18::tree_verification::cpu {

lab::Side baseline(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, {.drafter = p.model->eagle_drafter(),
                             .max_drafts = p.depth,
                             .lengths = engine::DraftLengths::fixed});
}

}  // namespace gauntlet::ch18::tree_verification::cpu
