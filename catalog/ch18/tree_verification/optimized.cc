// The same head guesses a tree as deep as that chain, and one step verifies all of its paths.
#include "catalog/ch18/tree_verification/pair.h"

namespace gauntlet::ch18::tree_verification::cpu {

lab::Side optimized(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, {.drafter = p.model->eagle_drafter(),
                             .max_drafts = p.guesses,
                             .lengths = engine::DraftLengths::fixed,
                             .tree = {.width = p.width, .depth = p.depth}});
}

}  // namespace gauntlet::ch18::tree_verification::cpu
