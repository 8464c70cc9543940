#include "tests/doubles/labs/lone_ladder/lab.h"

#include "tests/doubles/labs/scale_ladder/scaling.h"

namespace gauntlet::labs::lone_ladder {

lab::Lab<Params> lab() {
  return scale_ladder::ladder("sixteen passes → one, beside a library that cannot be here",
                              {.claim = "What a library needs is no need of the rungs.",
                               .cost = scale_ladder::cost,
                               .witness = lab::Witness::none("each rung has its own"),
                               .yardsticks = {{.name = "absent", .needs = {"4096 NUMA nodes"}}},
                               .rungs = {{.name = "once",
                                          .claim = "The one pass that it takes.",
                                          .witness = scale_ladder::fewer_passes()}}});
}

}  // namespace gauntlet::labs::lone_ladder
