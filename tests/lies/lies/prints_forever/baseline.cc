// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/prints_forever/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::prints_forever::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, kSlowPasses); };
}

}  // namespace gauntlet::lies::prints_forever::cpu
