// Each layer's gradient is summed before the next one is computed.
#include <algorithm>

#include "catalog/ch04/allreduce_overlap/pair.h"
#include "core/ranks/must.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::allreduce_overlap::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  return lab::counted({lab::exposed_ms(linked), lab::hidden_percent(linked)}, [p, linked] {
    for (std::int64_t layer = p.layers - 1; layer >= 0; --layer) {
      for (std::int64_t row = 0; row < p.width; row += kRows) {
        compute_rows(p, layer, row, std::min(row + kRows, p.width));
      }
      gauntlet::ranks::must(linked->group->all_sum(p.gradient(layer)));
    }
  });
}

}  // namespace gauntlet::ch04::allreduce_overlap::ranks
