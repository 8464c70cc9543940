// What followed the last few tokens when the request had them before.
#include "catalog/labs/speculative/lab.h"
#include "engine/speculation/ngram.h"

namespace gauntlet::labs::speculative::cpu {

lab::Side ngram(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, chains(p, std::make_shared<engine::NgramDrafter>()));
}

}  // namespace gauntlet::labs::speculative::cpu
