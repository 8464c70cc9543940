#include "catalog/ch12/graph_replay/pair.h"

#include "core/affine_rounds.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::graph_replay {

lab::Pair<Params> pair() {
  return {
      .title = "launches → captured graph",
      .technique = "graph_replay",
      .knobs = {{.name = "kernels", .cpu = 128, .max = 1 << 14, .help = "of a step"},
                {.name = "words", .cpu = 1 << 14, .max = 1 << 26, .help = "of 4 bytes"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A captured graph is one call of the host whatever it holds, and its kernels "
                  "follow each other without it; launched one by one, kernels this small wait "
                  "for the host. Capture, instantiation and upload come before.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::trace("launch_calls", lab::Witness::Moves::falls, 8,
                                             "calls of the host that launched the kernels of a "
                                             "step")},
      .metrics = {{.name = "kernels",
                   .unit = "kernels/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = [](const lab::Knobs& k) { return static_cast<double>(k["kernels"]); }},
                  {.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), kernels = b.knob("kernels");
            return Params{.in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                          .factor = b.input<std::uint32_t>("factor", kernels, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", words),
                          .words = words,
                          .kernels = kernels};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            AffineRounds rounds;
            for (std::int64_t kernel = 0; kernel < p.kernels; ++kernel) {
              rounds.add(p.factor[kernel]);
            }
            const auto out = r.exact<std::uint32_t>("out");
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = rounds(p.in[i]);
          },
  };
}

}  // namespace gauntlet::ch12::graph_replay
