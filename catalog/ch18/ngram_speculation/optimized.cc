// A step verifies what followed the last few tokens when the request had them before.
#include "catalog/ch18/ngram_speculation/pair.h"
#include "engine/speculation/ngram.h"

namespace gauntlet::ch18::ngram_speculation::cpu {

lab::Side optimized(const Params& p, const lab::Cpu& cpu) {
  p.model->open(cpu.threads);
  return counted_answers(p, {.drafter = std::make_shared<engine::NgramDrafter>(),
                             .max_drafts = p.drafts,
                             .lengths = engine::DraftLengths::fixed});
}

}  // namespace gauntlet::ch18::ngram_speculation::cpu
