// All chunks are on their way while a rank multiplies its own rows, and then those of the others as
// they come.
#include <memory>
#include <vector>

#include "catalog/ch04/tensor_parallel_async/pair.h"
#include "core/ranks/must.h"
#include "core/ranks/started.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::tensor_parallel_async::ranks {

using gauntlet::ranks::must;

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  const std::shared_ptr<gauntlet::ranks::Starter> starter =
      must(gauntlet::ranks::make_starter(*linked->group));
  const auto run = [p, starter, self = ranks.rank] {
    std::vector<std::shared_ptr<gauntlet::ranks::Started>> gathers;
    for (std::int64_t chunk = 0; chunk < p.chunks; ++chunk) {
      gathers.push_back(
          must(starter->all_gather(p.own_bytes(chunk, 1), p.gathered_bytes(chunk, 1))));
    }
    for (std::int64_t chunk = 0; chunk < p.chunks; ++chunk) {
      multiply(p, chunk, self, p.inputs + chunk * p.part());
    }
    for (std::int64_t chunk = 0; chunk < p.chunks; ++chunk) {
      must(gathers[static_cast<std::size_t>(chunk)]->wait());
      for (int rank = 0; rank < p.num_ranks; ++rank) {
        if (rank == self) continue;
        multiply(p, chunk, rank, p.gathered + (chunk * p.num_ranks + rank) * p.part());
      }
    }
  };
  return lab::counted({lab::exposed_ms(linked), lab::hidden_percent(linked)}, run);
}

}  // namespace gauntlet::ch04::tensor_parallel_async::ranks
