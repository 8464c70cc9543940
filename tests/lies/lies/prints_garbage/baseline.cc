// Honest, and slow on purpose; prints as much per run as the optimized side.
#include <cstdio>

#include "lab/author/side.h"
#include "tests/lies/lies/prints_garbage/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::prints_garbage::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    std::fputs("working\n", stderr);
    scale(p, kSlowPasses);
  };
}

}  // namespace gauntlet::lies::prints_garbage::cpu
