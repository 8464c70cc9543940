#include "catalog/ch12/graph_update/pair.h"

#include "core/affine_rounds.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::graph_update {

lab::Pair<Params> pair() {
  return {
      .title = "instantiate again → update parameters in place",
      .technique = "graph_update",
      .knobs = {{.name = "kernels", .cpu = 32, .min = 1, .max = 4096, .help = "of a graph"},
                {.name = "steps", .cpu = 16, .max = 1024, .help = "each with its own parameters"},
                {.name = "words", .cpu = 1 << 14, .max = 1 << 24, .help = "of 4 bytes"}},
      .cuda =
          lab::BackendFacts{
              .claim = "New parameters of one node are written into the graph that exists; to "
                       "instantiate it again makes all of its nodes anew. What is launched already "
                       "keeps its own.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {.read_bytes = bytes * static_cast<double>(k["steps"]),
                        .write_bytes = bytes,
                        .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("instantiations", lab::Witness::Moves::falls, 8,
                                               "graphs instantiated in a run, counted where it "
                                               "happens")},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), kernels = b.knob("kernels"),
                       steps = b.knob("steps");
            return Params{.in = b.input<std::uint32_t>("in", steps * words, lab::Fill::bytes()),
                          .factor = b.input<std::uint32_t>("factor", kernels, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", words),
                          .words = words,
                          .kernels = kernels,
                          .steps = steps};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            AffineRounds rounds;
            for (std::int64_t kernel = 0; kernel < p.kernels - 1; ++kernel) {
              rounds.add(p.factor[kernel]);
            }
            const auto out = r.exact<std::uint32_t>("out");
            for (std::int64_t step = 0; step < p.steps; ++step) {
              for (std::int64_t i = 0; i < p.words; ++i) {
                std::uint32_t& word = out[static_cast<std::size_t>(i)];
                word = rounds(word + p.in[step * p.words + i]);
              }
            }
          },
  };
}

}  // namespace gauntlet::ch12::graph_update
