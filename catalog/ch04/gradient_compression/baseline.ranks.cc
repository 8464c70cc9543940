// Messages of float32.
#include <functional>
#include <memory>

#include "catalog/ch04/gradient_compression/pair.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::gradient_compression::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  using Sum = WireSum<float, std::identity, std::identity>;
  const auto sum = std::make_shared<Sum>(p.count, ranks.size);
  return lab::counted(lab::sent_kib(linked),
                      [p, linked, sum] { (*sum)(*linked->group, p.gradients, p.sums); });
}

}  // namespace gauntlet::ch04::gradient_compression::ranks
