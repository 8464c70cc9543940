// The ranks of a host add up a part each; a ring over the ranks of all hosts that have the same
// part sums it; the ranks of a host gather the parts.
#include <memory>
#include <vector>

#include "catalog/ch04/topology_allreduce/pair.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::topology_allreduce::ranks {

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  const std::shared_ptr<gauntlet::ranks::Group> host =
      gauntlet::ranks::must(linked->group->split(ranks.rank / kRanksPerHost));
  const std::shared_ptr<gauntlet::ranks::Group> same_part =
      gauntlet::ranks::must(linked->group->split(ranks.rank % kRanksPerHost));
  const auto room = std::make_shared<std::vector<float>>();
  std::vector<std::size_t> counts, sizes;
  const auto parts = static_cast<std::size_t>(host->size());
  const auto count = static_cast<std::size_t>(p.count);
  std::size_t begin = 0;  // of this rank's part
  for (std::size_t part = 0; part < parts; ++part) {
    if (part == static_cast<std::size_t>(host->rank())) begin = count * part / parts;
    counts.push_back(count * (part + 1) / parts - count * part / parts);
    sizes.push_back(counts.back() * sizeof(float));
  }
  return lab::counted(
      lab::between_kib(linked), [p, linked, host, same_part, room, counts, sizes, count, begin] {
        const std::span sums(p.sums, count);
        const auto own = sums.subspan(begin, counts[static_cast<std::size_t>(host->rank())]);
        gauntlet::ranks::must(host->reduce_scatter(std::span(p.values, count), counts, own));
        ring_sum(*same_part, own, *room);
        gauntlet::ranks::must(
            host->all_gather(std::as_bytes(own), sizes, std::as_writable_bytes(sums)));
      });
}

}  // namespace gauntlet::ch04::topology_allreduce::ranks
