// Earlier text where it went on as it does now, and the head where it did not.
#include "catalog/labs/speculative/lab.h"
#include "engine/speculation/ngram.h"

namespace gauntlet::labs::speculative::cpu {

lab::Side two_drafters(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(
      p, chains(p, std::make_shared<engine::NgramDrafter>(), {p.model->eagle_drafter()}));
}

}  // namespace gauntlet::labs::speculative::cpu
