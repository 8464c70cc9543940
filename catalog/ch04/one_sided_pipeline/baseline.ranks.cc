// A message for each batch, received before it is used.
#include <memory>
#include <vector>

#include "catalog/ch04/one_sided_pipeline/pair.h"
#include "core/ranks/must.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::one_sided_pipeline::ranks {

using gauntlet::ranks::must;

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks);
  const auto received =
      std::make_shared<std::vector<std::uint32_t>>(static_cast<std::size_t>(p.size));
  return lab::counted(lab::messages_of(linked), [p, linked, received] {
    for (std::int64_t batch = 0; batch < p.batches; ++batch) {
      const std::uint32_t* in = p.inputs + batch * p.size;
      if (p.rank > 0) {
        must(linked->group->receive(p.rank - 1, std::as_writable_bytes(std::span(*received))));
        in = received->data();
      }
      compute(p, in, p.output(batch));
      if (p.rank + 1 < p.num_ranks) {
        must(linked->group->send(p.rank + 1, std::as_bytes(p.output(batch))));
      }
    }
  });
}

}  // namespace gauntlet::ch04::one_sided_pipeline::ranks
