// A collective for each step.
#include <algorithm>

#include "catalog/ch04/symmetric_memory/pair.h"
#include "core/ranks/must.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::symmetric_memory::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks);
  return lab::counted(lab::messages_of(linked), [p, linked] {
    for (std::int64_t step = 0; step < p.steps; ++step) {
      std::ranges::copy(p.value(step), p.sum(step).begin());
      gauntlet::ranks::must(linked->group->all_sum(p.sum(step)));
    }
  });
}

}  // namespace gauntlet::ch04::symmetric_memory::ranks
