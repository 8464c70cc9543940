#include "catalog/ch12/conditional_graph/pair.h"

#include <algorithm>

#include "core/affine_rounds.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::conditional_graph {

lab::Pair<Params> pair() {
  return {
      .title = "the host decides between launches → IF and SWITCH nodes on the device",
      .technique = "conditional_nodes",
      .knobs = {{.name = "rounds", .cpu = 32, .max = 512, .help = "of a router's choice each"},
                {.name = "words", .cpu = 1 << 14, .min = 2, .max = 1 << 24, .help = "of 4 bytes"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "The kernel that chooses sets the condition of the nodes that follow, and the "
                  "GPU goes on by itself; a host that launches what was chosen has to wait for "
                  "the choice first, every round. The graph is built before.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("stream_waits", lab::Witness::Moves::falls, 8,
                                               "times that the host waited for a choice, counted "
                                               "where it does")},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), rounds = b.knob("rounds");
            return Params{
                .in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                .factor = b.input<std::uint32_t>("factor", rounds * kExperts, lab::Fill::bytes()),
                .out = b.output<std::uint32_t>("out", words),
                .words = words,
                .rounds = rounds};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            std::copy_n(p.in, p.words, out.begin());
            for (std::int64_t round = 0; round < p.rounds; ++round) {
              const Choice choice = choose(out.data());
              const std::uint32_t factor = p.factor[round * kExperts + choice.expert];
              for (std::uint32_t& word : out) {
                word = affine_round(word, factor);
                if (choice.correct != 0) word = corrected(word);
              }
            }
          },
  };
}

}  // namespace gauntlet::ch12::conditional_graph
