#include "tests/lies/lies/witness_still/pair.h"

#include "tests/lies/scale_pair.h"

namespace gauntlet::lies::witness_still {

lab::Pair<Params> pair() {
  return scale_pair(
      lab::Witness::fact("passes", lab::Witness::Moves::falls, 2, "passes over the data"));
}

}  // namespace gauntlet::lies::witness_still
