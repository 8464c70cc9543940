// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/caches_answer/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::caches_answer::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, kSlowPasses); };
}

}  // namespace gauntlet::lies::caches_answer::cpu
