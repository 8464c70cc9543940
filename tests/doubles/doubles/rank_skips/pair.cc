#include "tests/doubles/doubles/rank_skips/pair.h"

#include "tests/doubles/doubles/rank_sum/sum_pair.h"

namespace gauntlet::doubles::rank_skips {

lab::Pair<Params> pair() {
  return rank_sum::sum_pair(lab::Witness::none("a lie has no mechanism"));
}

}  // namespace gauntlet::doubles::rank_skips
