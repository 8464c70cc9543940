#include "catalog/ch04/communicator_reuse/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch04::communicator_reuse {

lab::Pair<Params> pair() {
  return {
      .title = "create per step → create once",
      .technique = "reused_communicators",
      .needs = {"2 ranks"},
      .knobs = {{.name = "steps", .cpu = 64, .max = 1 << 12, .help = "each with one sum"},
                {.name = "length", .cpu = 64, .max = 1 << 20, .help = "values that a step sums"}},
      .ranks =
          lab::BackendFacts{
              .claim = "All ranks have to agree before there is a group, which here takes one "
                       "exchange of messages more per step (MPI and NCCL take several); the group "
                       "that is made once is made outside of the time.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["steps"] * k["length"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("messages", lab::Witness::Moves::falls, 1.9,
                                               "messages of a rank, counted under its group")},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto steps = b.knob("steps"), length = b.knob("length");
            return Params{.values = b.input<float>("values", steps * length,
                                                   lab::Fill::whole_floats(-1000, 1000)),
                          .sums = b.output<float>("sums", steps * length),
                          .steps = steps,
                          .length = length,
                          .rank = b.rank(),
                          .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto sums = r.exact<float>("sums");
            for (int rank = 0; rank < p.num_ranks; ++rank) {
              if (colour_of(rank) != colour_of(p.rank)) continue;
              const auto* values = r.peer_input<float>("values", rank);
              for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
            }
          },
  };
}

}  // namespace gauntlet::ch04::communicator_reuse
