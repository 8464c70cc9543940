// What a library would do.
#include "lab/author/side.h"
#include "tests/doubles/labs/scale_ladder/lab.h"

namespace gauntlet::labs::scale_ladder::cpu {

lab::Side library(const Params& p, const lab::Cpu&) {
  return {[p] { scale(p, 1); }, {{"passes", 1}}};
}

}  // namespace gauntlet::labs::scale_ladder::cpu
