// The last rank sends its values and writes down one sum in two.
#include "lab/author/side.h"
#include "tests/doubles/doubles/rank_skips/pair.h"

namespace gauntlet::doubles::rank_skips::ranks {

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  if (ranks.rank + 1 < ranks.size) {
    return [p, group = ranks.group] { rank_sum::sum_part(p, *group, 0, p.count); };
  }
  return [p, group = ranks.group] {
    std::vector<std::int32_t> all(static_cast<std::size_t>(p.count));
    Params aside = p;
    aside.sums = all.data();
    rank_sum::sum_part(aside, *group, 0, p.count);
    for (std::int64_t i = 0; i < p.count; i += 2) p.sums[i] = all[static_cast<std::size_t>(i)];
  };
}

}  // namespace gauntlet::doubles::rank_skips::ranks
