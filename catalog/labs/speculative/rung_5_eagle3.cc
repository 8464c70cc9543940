// A head of one layer that goes on from the residuals of the model itself.
#include "catalog/labs/speculative/lab.h"

namespace gauntlet::labs::speculative::cpu {

lab::Side eagle3(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, chains(p, p.model->eagle_drafter()));
}

}  // namespace gauntlet::labs::speculative::cpu
