// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/leaves_unwritten/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::leaves_unwritten::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, kSlowPasses); };
}

}  // namespace gauntlet::lies::leaves_unwritten::cpu
