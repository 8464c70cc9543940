// What does it cost that bytes between GPUs of two hosts pass through the hosts' memory?
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/cuda/memory/gpu_bytes.h"
#include "core/ranks/mpi_exchange.h"
#include "core/ranks/must.h"
#include "lab/author/counted.h"

namespace gauntlet::ch04::rdma_direct {

constexpr int kHops = 8;  // that each rank's words go around the ring of ranks

struct Params {
  const std::uint32_t* in;  // [words], in the host's memory
  std::uint32_t* out;       // [words]: those of the rank kHops before this one
  std::int64_t words;
  int rank;
  int num_ranks;

  std::size_t bytes() const { return 4 * static_cast<std::size_t>(words); }
  int next() const { return (rank + 1) % num_ranks; }
  int previous() const { return (rank + num_ranks - 1) % num_ranks; }
};

/// A rank's GPU: what it has of the ring's words, and room for those that come.
class RankGpu {
 public:
  explicit RankGpu(const Params& p)
      : RankGpu(p, gauntlet::ranks::must(GpuBytes::make(p.rank, 2 * p.bytes())),
                gauntlet::ranks::must(gauntlet::ranks::MpiExchange::find())) {}
  RankGpu(const Params& p, std::unique_ptr<GpuBytes> gpu,
          std::unique_ptr<gauntlet::ranks::MpiExchange> mpi)
      : p_(p), gpu_(std::move(gpu)), mpi_(std::move(mpi)) {}

  GpuBytes& gpu() { return *gpu_; }
  gauntlet::ranks::MpiExchange& mpi() { return *mpi_; }

  /// `hop(from, to)` has the words at `from` sent on, and those that come put at `to`.
  template <class Hop>
  void run(Hop hop) {
    gpu_->upload(0, p_.in, p_.bytes());
    gpu_->wait();
    std::size_t from = 0, to = p_.bytes();
    for (int i = 0; i < kHops; ++i) {
      hop(from, to);
      std::swap(from, to);
    }
    gpu_->download(p_.out, from, p_.bytes());
    gpu_->wait();
  }

 private:
  Params p_;
  std::unique_ptr<GpuBytes> gpu_;
  std::unique_ptr<gauntlet::ranks::MpiExchange> mpi_;
};

/// "link_bytes": what a run copies between the GPU and its host.
inline lab::Count link_bytes(const std::shared_ptr<RankGpu>& rank) {
  return {.name = "link_bytes",
          .total = [rank] { return static_cast<double>(rank->gpu().link_bytes()); },
          .per = {}};
}

}  // namespace gauntlet::ch04::rdma_direct
