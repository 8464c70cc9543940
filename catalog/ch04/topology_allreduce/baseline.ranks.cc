// One ring over all ranks, in their order, so that no more of its links than needed leave a host.
#include <algorithm>
#include <memory>

#include "catalog/ch04/topology_allreduce/pair.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::topology_allreduce::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  const auto room = std::make_shared<std::vector<float>>();
  return lab::counted(lab::between_kib(linked), [p, linked, room] {
    const std::span sums(p.sums, static_cast<std::size_t>(p.count));
    std::copy_n(p.values, p.count, p.sums);
    ring_sum(*linked->group, sums, *room);
  });
}

}  // namespace gauntlet::ch04::topology_allreduce::ranks
