// Each step makes the group that it sums over.
#include <algorithm>

#include "catalog/ch04/communicator_reuse/pair.h"
#include "core/ranks/must.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::communicator_reuse::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks);
  return lab::counted(lab::messages_of(linked), [p, linked, colour = colour_of(ranks.rank)] {
    for (std::int64_t step = 0; step < p.steps; ++step) {
      const auto group = gauntlet::ranks::must(linked->group->split(colour));
      std::ranges::copy(p.value(step), p.sum(step).begin());
      gauntlet::ranks::must(group->all_sum(p.sum(step)));
    }
  });
}

}  // namespace gauntlet::ch04::communicator_reuse::ranks
