// All rows are gathered, and then multiplied.
#include "catalog/ch04/tensor_parallel_async/pair.h"
#include "core/ranks/must.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::tensor_parallel_async::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  const auto run = [p, linked] {
    gauntlet::ranks::must(
        linked->group->all_gather(p.own_bytes(0, p.chunks), p.gathered_bytes(0, p.chunks)));
    for (int rank = 0; rank < p.num_ranks; ++rank) {
      for (std::int64_t chunk = 0; chunk < p.chunks; ++chunk) {
        multiply(p, chunk, rank, p.gathered + (rank * p.chunks + chunk) * p.part());
      }
    }
  };
  return lab::counted({lab::exposed_ms(linked), lab::hidden_percent(linked)}, run);
}

}  // namespace gauntlet::ch04::tensor_parallel_async::ranks
