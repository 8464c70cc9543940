// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/witness_still/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::witness_still::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return {[p] { scale(p, kSlowPasses); }, {{"passes", kSlowPasses}}};
}

}  // namespace gauntlet::lies::witness_still::cpu
