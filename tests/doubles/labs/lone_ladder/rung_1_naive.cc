// Sixteen passes where one would do.
#include "lab/author/side.h"
#include "tests/doubles/labs/lone_ladder/lab.h"

namespace gauntlet::labs::lone_ladder::cpu {

lab::Side naive(const Params& p, const lab::Cpu&) {
  return {[p] { scale_ladder::scale(p, 16); }, {{"passes", 16}}};
}

}  // namespace gauntlet::labs::lone_ladder::cpu
