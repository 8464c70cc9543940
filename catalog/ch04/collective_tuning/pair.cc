#include "catalog/ch04/collective_tuning/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch04::collective_tuning {

lab::Pair<Params> pair() {
  return {
      .title = "library default → algorithm chosen by measurement",
      .technique = "tuned_collectives",
      .needs = {"4 ranks"},
      .knobs = {{.name = "link_us", .cpu = 600, .min = 0, .help = "declared latency of the link"},
                {.name = "link_mb_s", .cpu = 20, .help = "declared rate of a rank's port"}},
      .ranks =
          lab::BackendFacts{
              .claim = "A default knows neither latency nor rate of the links: over links of "
                       "declared ones, five algorithms are measured for each size outside of the "
                       "time, and the fastest is taken. Terms may be added in another order.",
              .cost = [](const lab::Knobs&) -> lab::Cost {
                constexpr double kBytes = 4.0 * static_cast<double>(total_length());
                return {
                    .read_bytes = kBytes, .write_bytes = kBytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("wire_ms", lab::Witness::Moves::falls, 1.1,
                                               "how long something was on its way to a rank, by "
                                               "the stamps of its links")},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            return Params{
                .values =
                    b.input<float>("values", total_length(), lab::Fill::whole_floats(-1000, 1000)),
                .sums = b.output<float>("sums", total_length()),
                .fabric = {.between = {.latency_s = 1e-6 * static_cast<double>(b.knob("link_us")),
                                       .bytes_per_s =
                                           1e6 * static_cast<double>(b.knob("link_mb_s"))}},
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

}  // namespace gauntlet::ch04::collective_tuning
