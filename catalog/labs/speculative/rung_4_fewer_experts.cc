// The model itself with one expert for each token in place of four.
#include "catalog/labs/speculative/lab.h"

namespace gauntlet::labs::speculative::cpu {

lab::Side fewer_experts(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, chains(p, p.model->self_drafter(1)));
}

}  // namespace gauntlet::labs::speculative::cpu
