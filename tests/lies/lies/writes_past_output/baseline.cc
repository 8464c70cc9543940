// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/writes_past_output/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::writes_past_output::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, kSlowPasses); };
}

}  // namespace gauntlet::lies::writes_past_output::cpu
