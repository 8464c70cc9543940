// Wrong in its last element only.
#include "lab/author/side.h"
#include "tests/lies/lies/wrong_result/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::wrong_result::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    p.out[p.count - 1] += 1.0f;
  };
}

}  // namespace gauntlet::lies::wrong_result::cpu
