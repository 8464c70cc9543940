#include "catalog/ch12/programmatic_launch/pair.h"

#include "core/affine_rounds.h"
#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::programmatic_launch {

lab::Pair<Params> pair() {
  return {
      .title = "kernel boundary → programmatic dependent launch",
      .technique = "programmatic_launch",
      .knobs = {{.name = "words",
                 .cpu = 1 << 17,
                 .min = kBlockWords,
                 .max = 1 << 24,
                 .multiple_of = kBlockWords,
                 .help = "of 4 bytes, each with a weight in every layer"},
                {.name = "layers", .cpu = 48, .max = 4096, .help = "a kernel each"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A kernel that may start while the one in front ends is there, and has read "
                       "its weights, when the other's results are; else launch and first loads are "
                       "waited for after each kernel. Both sides replay a graph, made before.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {.read_bytes = bytes * static_cast<double>(k["layers"] + 1),
                        .write_bytes = bytes,
                        .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::fact("programmatic_edges", lab::Witness::Moves::rises, 8,
                                            "kernels of the graph that may start before the one in "
                                            "front has ended, by cudaGraphGetEdges()"),
              .needs = {"sm_90"}},
      .metrics = {{.name = "kernels",
                   .unit = "kernels/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = [](const lab::Knobs& k) { return static_cast<double>(k["layers"]); }}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), layers = b.knob("layers");
            return Params{
                .in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                .weights = b.input<std::uint32_t>("weights", layers * words, lab::Fill::bytes()),
                .out = b.output<std::uint32_t>("out", words),
                .words = words,
                .layers = layers};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            parallel_for(p.words, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                out[static_cast<std::size_t>(i)] = p.in[i];
              }
              for (std::int64_t layer = 0; layer < p.layers; ++layer) {
                const std::uint32_t* weights = p.weights + layer * p.words;
                for (std::int64_t i = begin; i < end; ++i) {
                  std::uint32_t& word = out[static_cast<std::size_t>(i)];
                  word = affine_round(word, weights[i]);
                }
              }
            });
          },
  };
}

}  // namespace gauntlet::ch12::programmatic_launch
