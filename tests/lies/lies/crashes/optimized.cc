// Writes where nothing is.
#include "lab/author/side.h"
#include "tests/lies/lies/crashes/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::crashes::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    volatile float* volatile nowhere = nullptr;
    *nowhere = p.out[0];
  };
}

}  // namespace gauntlet::lies::crashes::cpu
