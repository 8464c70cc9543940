// The head's likeliest guesses as a tree, as deep as the chain before.
#include "catalog/labs/speculative/lab.h"

namespace gauntlet::labs::speculative::cpu {

lab::Side eagle3_tree(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  engine::Speculation speculation = chains(p, p.model->eagle_drafter());
  speculation.tree = {.width = 2, .depth = p.drafts};
  speculation.max_drafts = 2 * p.drafts;
  return counted_answers(p, speculation);
}

}  // namespace gauntlet::labs::speculative::cpu
