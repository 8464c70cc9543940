// A step for each token.
#include "catalog/labs/speculative/lab.h"

namespace gauntlet::labs::speculative::cpu {

lab::Side off(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, {});
}

}  // namespace gauntlet::labs::speculative::cpu
