// A hop through the hosts' memory, piece by piece.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>

#include "catalog/ch04/rdma_direct/pair.h"

namespace gauntlet::ch04::rdma_direct {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

/// Two pieces on their way out and two that come, of kPieceBytes each.
struct Staging {
  using Slots = std::array<std::shared_ptr<std::byte>, 2>;
  Slots out, in;
};

/// A piece is copied from the GPU while the one before is on the network, and that into the next
/// GPU while this one is.
inline void staged_hop(const Params& p, RankGpu& rank, const Staging& staging, std::size_t from,
                       std::size_t to) {
  using gauntlet::ranks::must;
  const std::size_t pieces = (p.bytes() + kPieceBytes - 1) / kPieceBytes;
  const auto size = [&](std::size_t piece) {
    return std::min(kPieceBytes, p.bytes() - piece * kPieceBytes);
  };
  for (std::size_t piece = 0; piece <= pieces; ++piece) {
    if (piece < pieces) {
      rank.gpu().download(staging.out[piece % 2].get(), from + piece * kPieceBytes, size(piece));
      // The piece is here, and the one that came last is in the GPU: both slots are free again.
      rank.gpu().wait();
      must(rank.mpi().start(p.next(), staging.out[piece % 2].get(), p.previous(),
                            staging.in[piece % 2].get(), size(piece)));
    }
    if (piece > 0) {
      must(rank.mpi().finish());
      rank.gpu().upload(to + (piece - 1) * kPieceBytes, staging.in[(piece - 1) % 2].get(),
                        size(piece - 1));
    }
  }
  rank.gpu().wait();
}

}  // namespace gauntlet::ch04::rdma_direct
