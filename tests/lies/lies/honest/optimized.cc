// The same work in one pass.
#include "lab/author/side.h"
#include "tests/lies/lies/honest/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::honest::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] { scale(p); };
}

}  // namespace gauntlet::lies::honest::cpu
