// One: the tenth rung follows the second, as numbers do.
#include "lab/author/side.h"
#include "tests/doubles/labs/scale_ladder/lab.h"

namespace gauntlet::labs::scale_ladder::cpu {

lab::Side once(const Params& p, const lab::Cpu&) {
  return {[p] { scale(p, 1); }, {{"passes", 1}}};
}

}  // namespace gauntlet::labs::scale_ladder::cpu
