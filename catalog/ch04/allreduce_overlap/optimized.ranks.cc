// A layer's gradient is on its way while the next ones are computed; all sums are waited for at the
// end. What is under way moves on in calls, so that computing stops for one now and then.
#include <algorithm>
#include <memory>
#include <vector>

#include "catalog/ch04/allreduce_overlap/pair.h"
#include "core/ranks/must.h"
#include "core/ranks/started.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::allreduce_overlap::ranks {

using gauntlet::ranks::must;

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  const std::shared_ptr<gauntlet::ranks::Starter> starter =
      must(gauntlet::ranks::make_starter(*linked->group));
  const auto run = [p, starter] {
    std::vector<std::shared_ptr<gauntlet::ranks::Started>> sums;
    for (std::int64_t layer = p.layers - 1; layer >= 0; --layer) {
      for (std::int64_t row = 0; row < p.width; row += kRows) {
        compute_rows(p, layer, row, std::min(row + kRows, p.width));
        must(starter->progress());
      }
      sums.push_back(must(starter->all_sum(p.gradient(layer))));
    }
    for (const auto& sum : sums) must(sum->wait());
  };
  return lab::counted({lab::exposed_ms(linked), lab::hidden_percent(linked)}, run);
}

}  // namespace gauntlet::ch04::allreduce_overlap::ranks
