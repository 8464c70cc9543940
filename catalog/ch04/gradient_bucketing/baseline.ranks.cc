// One sum over the ranks for each tensor.
#include <algorithm>

#include "catalog/ch04/gradient_bucketing/pair.h"
#include "core/ranks/must.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::gradient_bucketing::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks);
  return lab::counted(lab::messages_of(linked), [p, linked] {
    for (std::int64_t tensor = 0; tensor < p.tensors; ++tensor) {
      const auto sum = p.sum(tensor);
      std::ranges::copy(p.gradient(tensor), sum.begin());
      gauntlet::ranks::must(linked->group->all_sum(sum));
    }
  });
}

}  // namespace gauntlet::ch04::gradient_bucketing::ranks
