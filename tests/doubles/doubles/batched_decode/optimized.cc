// All sequences in each step.
#include "lab/author/counted.h"
#include "tests/doubles/doubles/batched_decode/engine.h"
#include "tests/doubles/doubles/batched_decode/pair.h"

namespace gauntlet::doubles::batched_decode::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  lab::Side side =
      lab::counted({.name = "steps",
                    .total = [engine = p.engine] { return static_cast<double>(engine->steps()); }},
                   [p] { p.engine->generate(p.prompts, p.tokens, p.sequences, p.sequences); });
  side.helpers = lab::Helpers::threads;
  return side;
}

}  // namespace gauntlet::doubles::batched_decode::cpu
