// One NaN in the middle.
#include <limits>

#include "lab/author/side.h"
#include "tests/lies/lies/returns_nan/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::returns_nan::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    p.out[p.count / 2] = std::numeric_limits<float>::quiet_NaN();
  };
}

}  // namespace gauntlet::lies::returns_nan::cpu
