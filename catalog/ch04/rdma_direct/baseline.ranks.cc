// Pieces go into page-locked memory of the host, from there over the network, and into the next
// GPU.
#include "catalog/ch04/rdma_direct/pair.h"
#include "catalog/ch04/rdma_direct/staging.h"
#include "lab/author/side.h"

namespace gauntlet::ch04::rdma_direct::ranks {
namespace {

Staging::Slots make_slots() {
  using gauntlet::ranks::must;
  return {must(pinned_bytes(kPieceBytes)), must(pinned_bytes(kPieceBytes))};
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Ranks&) {
  const auto rank = std::make_shared<RankGpu>(p);
  lab::Side side = lab::counted(
      link_bytes(rank), [p, rank, staging = Staging{.out = make_slots(), .in = make_slots()}] {
        rank->run(
            [&](std::size_t from, std::size_t to) { staged_hop(p, *rank, staging, from, to); });
      });
  side.helpers = lab::Helpers::threads;  // the driver's
  return side;
}

}  // namespace gauntlet::ch04::rdma_direct::ranks
