// The pair of the honest ranks and of those that lie: values are added up over all ranks.
#pragma once
#include "lab/author/pair.h"
#include "tests/doubles/doubles/rank_sum/pair.h"

namespace gauntlet::doubles::rank_sum {

inline lab::Pair<Params> sum_pair(lab::Witness witness) {
  return {
      .title = "a message per 64 values → one message",
      .technique = "large_messages",
      .needs = {"2 ranks"},
      .knobs = {{.name = "count", .cpu = 1 << 13, .multiple_of = 64, .help = "values of a rank"}},
      .ranks = lab::BackendFacts{.claim = "A message has a price of its own, whatever it carries.",
                                 .cost =
                                     [](const lab::Knobs& knobs) {
                                       const auto count = static_cast<double>(knobs["count"]);
                                       return lab::Cost{.read_bytes = 4 * count,
                                                        .write_bytes = 4 * count,
                                                        .level = lab::Cost::Level::cache};
                                     },
                                 .witness = std::move(witness)},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{
                .values = b.input<std::int32_t>("values", count, lab::Fill::integers(0, 1000)),
                .sums = b.output<std::int32_t>("sums", count),
                .count = count,
                .num_ranks = b.num_ranks()};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto sums = r.exact<std::int32_t>("sums");
            for (int rank = 0; rank < p.num_ranks; ++rank) {
              const auto* values = r.peer_input<std::int32_t>("values", rank);
              for (std::size_t i = 0; i < static_cast<std::size_t>(p.count); ++i) {
                sums[i] += values[i];
              }
            }
          },
  };
}

}  // namespace gauntlet::doubles::rank_sum
