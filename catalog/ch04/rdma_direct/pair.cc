#include "catalog/ch04/rdma_direct/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch04::rdma_direct {

lab::Pair<Params> pair() {
  return {
      .title = "staged through the host → NIC to GPU / CUDA-aware",
      .technique = "direct_network_access",
      .knobs = {{.name = "words",
                 .cpu = 1 << 24,
                 .max = 1 << 28,
                 .help = "of 4 bytes, of each rank, on their way around all ranks"}},
      .ranks =
          lab::BackendFacts{
              .claim = "A network adapter that reads and writes a GPU's memory leaves out the two "
                       "copies through the hosts and the calls that keep them going; staged in "
                       "pieces they overlap, and still share the GPU's link with nothing gained.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("link_bytes", lab::Witness::Moves::falls, 2,
                                               "bytes that were copied between a GPU and its host"),
              // MPI has to carry a GPU's memory itself, and one host may have both ranks.
              .needs = {"2 ranks", "mpi", "rdma", "1 GPU"}},
      .metrics = {{.name = "rate between GPUs",
                   .unit = "B/s, of each rank",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount =
                       [](const lab::Knobs& k) {
                         return 4.0 * kHops * static_cast<double>(k["words"]);
                       }}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words");
            return Params{.in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", words),
                          .words = words,
                          .rank = b.rank(),
                          .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const int from =
                (p.rank + (kHops / p.num_ranks + 1) * p.num_ranks - kHops) % p.num_ranks;
            std::copy_n(r.peer_input<std::uint32_t>("in", from), p.words,
                        r.exact<std::uint32_t>("out").begin());
          },
  };
}

}  // namespace gauntlet::ch04::rdma_direct
