#include "tests/doubles/labs/scale_ladder/lab.h"

#include "tests/doubles/labs/scale_ladder/scaling.h"

namespace gauntlet::labs::scale_ladder {

lab::Lab<Params> lab() {
  return ladder(
      "sixteen passes → four → one",
      {.claim = "A pass that nobody needs takes as long as one that counts.",
       .cost = cost,
       .witness = lab::Witness::none("each rung has its own"),
       .rungs = {
           {.name = "four", .claim = "Twelve passes less.", .witness = fewer_passes()},
           {.name = "once", .claim = "The one pass that it takes.", .witness = fewer_passes()}}});
}

}  // namespace gauntlet::labs::scale_ladder
