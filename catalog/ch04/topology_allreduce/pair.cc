#include "catalog/ch04/topology_allreduce/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch04::topology_allreduce {

lab::Pair<Params> pair() {
  return {
      .title = "flat ring → hierarchical by host",
      .technique = "hierarchical_collectives",
      .needs = {"4 ranks"},
      .knobs = {{.name = "kilo", .cpu = 64, .max = 1 << 16, .help = "1024 values per rank"},
                {.name = "between_us",
                 .cpu = 1000,
                 .min = 0,
                 .help = "declared latency of a link between hosts"},
                {.name = "between_mb_s", .cpu = 50, .help = "declared rate of a port to them"},
                {.name = "within_us",
                 .cpu = 50,
                 .min = 0,
                 .help = "declared latency of a link within a host"},
                {.name = "within_mb_s", .cpu = 2000, .help = "declared rate of a port to it"}},
      .ranks =
          lab::BackendFacts{
              .claim = "Over a fabric of declared links, two ranks on a host and slower ones "
                       "between hosts, a sum within the hosts first sends less between them, and "
                       "waits for their latency less often.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * 1024 * static_cast<double>(k["kilo"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("between_kib", lab::Witness::Moves::falls, 1.4,
                                               "what a rank sends to other hosts, counted by its "
                                               "links (the mean of all)")},
      .bind =
          [](lab::Binder& b) {
            const std::int64_t count = 1024 * b.knob("kilo");
            const auto link = [&](const char* latency_us, const char* mb_s) {
              return gauntlet::ranks::Link{
                  .latency_s = 1e-6 * static_cast<double>(b.knob(latency_us)),
                  .bytes_per_s = 1e6 * static_cast<double>(b.knob(mb_s))};
            };
            return Params{
                .values = b.input<float>("values", count, lab::Fill::whole_floats(-1000, 1000)),
                .sums = b.output<float>("sums", count),
                .count = count,
                .fabric = {.between = link("between_us", "between_mb_s"),
                           .within = link("within_us", "within_mb_s"),
                           .ranks_per_host = kRanksPerHost},
                .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // Whole numbers: sums are exact in any order.
            const auto sums = r.exact<float>("sums");
            for (int rank = 0; rank < p.num_ranks; ++rank) {
              const auto* values = r.peer_input<float>("values", rank);
              for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
            }
          },
  };
}

}  // namespace gauntlet::ch04::topology_allreduce
