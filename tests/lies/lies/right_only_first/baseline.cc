// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/right_only_first/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::right_only_first::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, kSlowPasses); };
}

}  // namespace gauntlet::lies::right_only_first::cpu
