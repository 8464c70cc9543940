// The honest side.
#include "lab/author/side.h"
#include "tests/doubles/doubles/rank_skips/pair.h"

namespace gauntlet::doubles::rank_skips::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  return [p, group = ranks.group] { rank_sum::sum_part(p, *group, 0, p.count); };
}

}  // namespace gauntlet::doubles::rank_skips::ranks
