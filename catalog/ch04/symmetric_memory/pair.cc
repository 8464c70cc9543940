#include "catalog/ch04/symmetric_memory/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch04::symmetric_memory {

lab::Pair<Params> pair() {
  return {
      .title = "collectives → direct one-sided writes for small messages",
      .technique = "one_sided_writes",
      .needs = {"2 ranks"},
      .knobs = {{.name = "steps", .cpu = 64, .max = 1 << 12, .help = "sums, one after the other"},
                {.name = "length", .cpu = 64, .max = 1 << 16, .help = "values of a sum"}},
      .ranks =
          lab::BackendFacts{
              .claim = "Ranks that share memory write small operands where their peers add them "
                       "up: a copy and a counter, where a message is made, queued, matched and "
                       "copied twice. The window is opened outside of the time.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["steps"] * k["length"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("messages", lab::Witness::Moves::falls, 8,
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
                          .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto sums = r.exact<float>("sums");
            for (int rank = 0; rank < p.num_ranks; ++rank) {
              const auto* values = r.peer_input<float>("values", rank);
              for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
            }
          },
  };
}

}  // namespace gauntlet::ch04::symmetric_memory
