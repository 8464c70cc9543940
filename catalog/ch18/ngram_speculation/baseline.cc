// A step of the model for each token.
#include "catalog/ch18/ngram_speculation/pair.h"

namespace gauntlet::ch18::ngram_speculation::cpu {

lab::Side baseline(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, {});
}

}  // namespace gauntlet::ch18::ngram_speculation::cpu
