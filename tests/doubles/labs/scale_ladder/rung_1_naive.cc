// Sixteen passes where one would do.
#include "lab/author/side.h"
#include "tests/doubles/labs/scale_ladder/lab.h"

namespace gauntlet::labs::scale_ladder::cpu {

lab::Side naive(const Params& p, const lab::Cpu&) {
  return {[p] { scale(p, 16); }, {{"passes", 16}}};
}

}  // namespace gauntlet::labs::scale_ladder::cpu
