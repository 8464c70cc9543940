#include "tests/doubles/doubles/rank_sum/pair.h"

#include "tests/doubles/doubles/rank_sum/sum_pair.h"

namespace gauntlet::doubles::rank_sum {

lab::Pair<Params> pair() {
  return sum_pair(lab::Witness::fact("messages", lab::Witness::Moves::falls, 8, "messages sent"));
}

}  // namespace gauntlet::doubles::rank_sum
