// Four.
#include "lab/author/side.h"
#include "tests/doubles/labs/scale_ladder/lab.h"

namespace gauntlet::labs::scale_ladder::cpu {

lab::Side four(const Params& p, const lab::Cpu&) {
  return {[p] { scale(p, 4); }, {{"passes", 4}}};
}

}  // namespace gauntlet::labs::scale_ladder::cpu
