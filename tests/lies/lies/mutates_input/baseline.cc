// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/mutates_input/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::mutates_input::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, kSlowPasses); };
}

}  // namespace gauntlet::lies::mutates_input::cpu
