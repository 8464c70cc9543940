#include "catalog/ch12/piece_graphs/pair.h"

#include "core/affine_rounds.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::piece_graphs {
namespace {

lab::Metric before_the_clock(const std::string& name) {
  return {.name = name, .unit = "us, before the clock starts", .from = lab::Metric::From::fact};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "recapture one whole graph → cached regional graphs",
      .technique = "piece_graphs",
      .knobs =
          {{.name = "layers",
            .cpu = 24,
            .max = 512,
            .help = "of a region of four kernels and one that changes"},
           {.name = "steps", .cpu = 8, .max = 256, .help = "that differ in one kernel a layer"},
           {.name = "words", .cpu = 1 << 14, .max = 1 << 24, .help = "of 4 bytes"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Regions that are the same in every step are captured and instantiated once, "
                  "and replayed around the kernel that changes; a graph of the whole step is "
                  "made again whenever any of it does. What either costs to make is a metric.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("nodes_made", lab::Witness::Moves::falls, 8,
                                               "nodes of the graphs that a run instantiates, by "
                                               "cudaGraphGetNodes()")},
      .metrics = {before_the_clock("capture_us"), before_the_clock("instantiate_us"),
                  before_the_clock("first_launch_us")},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), layers = b.knob("layers");
            return Params{.in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                          .factor = b.input<std::uint32_t>("factor", layers * (kRegionKernels + 1),
                                                           lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", words),
                          .words = words,
                          .layers = layers,
                          .steps = b.knob("steps")};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            for (std::int64_t step = 0; step < p.steps; ++step) {
              AffineRounds with, without;
              for (std::int64_t layer = 0; layer < p.layers; ++layer) {
                const std::uint32_t* factor = p.factor + layer * (kRegionKernels + 1);
                for (std::int64_t kernel = 0; kernel < kRegionKernels; ++kernel) {
                  with.add(factor[kernel]);
                  without.add(factor[kernel]);
                }
                with.add(factor[kRegionKernels]);
              }
              for (std::int64_t i = 0; i < p.words; ++i) {
                std::uint32_t& word = out[static_cast<std::size_t>(i)];
                if (step == 0) word = p.in[i];
                word = i < changing_words(p, step) ? with(word) : without(word);
              }
            }
          },
  };
}

}  // namespace gauntlet::ch12::piece_graphs
