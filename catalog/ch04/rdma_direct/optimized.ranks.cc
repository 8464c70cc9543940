// MPI is given the GPU's addresses, and the network adapter reads and writes there.
#include "catalog/ch04/rdma_direct/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch04::rdma_direct::ranks {

using gauntlet::ranks::must;

lab::Side optimized(const Params& p, const lab::Ranks&) {
  const auto rank = std::make_shared<RankGpu>(p);
  must(rank->mpi().takes_device_memory());
  lab::Side side = lab::counted(link_bytes(rank), [p, rank] {
    rank->run([&](std::size_t from, std::size_t to) {
      std::byte* const words = rank->gpu().data();
      must(rank->mpi().start(p.next(), words + from, p.previous(), words + to, p.bytes()));
      must(rank->mpi().finish());
    });
  });
  side.helpers = lab::Helpers::threads;  // the driver's
  return side;
}

}  // namespace gauntlet::ch04::rdma_direct::ranks
