// What the library takes for each size by default.
#include "catalog/ch04/collective_tuning/pair.h"
#include "core/ranks/must.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::collective_tuning::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  return lab::counted(lab::wire_ms(linked), [p, linked] {
    for_messages(p, [&](std::size_t, std::span<float> sum) {
      gauntlet::ranks::must(linked->group->all_sum(sum));
    });
  });
}

}  // namespace gauntlet::ch04::collective_tuning::ranks
