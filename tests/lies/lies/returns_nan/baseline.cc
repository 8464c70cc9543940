// Honest, and slow on purpose.
#include "lab/author/side.h"
#include "tests/lies/lies/returns_nan/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::returns_nan::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] { scale(p, kSlowPasses); };
}

}  // namespace gauntlet::lies::returns_nan::cpu
