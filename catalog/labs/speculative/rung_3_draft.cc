// A smaller model with the same tokens, one step of its own for each guess.
#include "catalog/labs/speculative/lab.h"

namespace gauntlet::labs::speculative::cpu {

lab::Side draft(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, chains(p, p.model->model_drafter("gauntlet-draft")));
}

}  // namespace gauntlet::labs::speculative::cpu
