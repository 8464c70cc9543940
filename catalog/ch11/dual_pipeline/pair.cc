#include "catalog/ch11/dual_pipeline/pair.h"

#include "core/affine_rounds.h"
#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch11::dual_pipeline {

lab::Pair<Params> pair() {
  return {
      .title = "one pipeline → two half-batches, communication and computation crossed",
      .technique = "crossed_half_batches",
      .knobs = {{.name = "words",
                 .cpu = 1 << 20,
                 .min = 2 * kBlockWords,
                 .max = 1 << 26,
                 .multiple_of = 2 * kBlockWords,
                 .help = "of a half-batch, 4 bytes each"},
                {.name = "layers", .cpu = 5, .max = 256, .help = "that compute and communicate"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A layer needs what the one before communicated, but only of its own half of "
                  "the batch; with a stream for each half one is on the wire while the other "
                  "is on the SMs. The wire is the link to the host.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4.0 * kHalves * static_cast<double>(k["words"] * k["layers"]);
                return {.read_bytes = bytes,
                        .write_bytes = bytes,
                        .level = lab::Cost::Level::host_link};
              },
              .witness = lab::Witness::trace("at_a_time", lab::Witness::Moves::rises, 1.3,
                                             "kernels and copies under way while any was")},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words");
            return Params{
                .in = b.input<std::uint32_t>("in", kHalves * words, lab::Fill::bytes()),
                .factor = b.input<std::uint32_t>("factor", kRounds, lab::Fill::bytes()),
                .hidden = b.scratch<std::uint32_t>("hidden", kHalves * words),
                .wire = b.scratch<std::uint32_t>("wire", kHalves * words, lab::Memory::pinned),
                .out = b.output<std::uint32_t>("out", kHalves * words),
                .words = words,
                .layers = b.knob("layers")};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            AffineRounds rounds;
            for (std::int64_t layer = 0; layer < p.layers; ++layer) {
              for (int round = 0; round < kRounds; ++round) rounds.add(p.factor[round]);
            }
            // Exchanged twice, front and back are where they were.
            const std::int64_t moved = p.layers % 2 == 0 ? 0 : p.words / 2;
            const auto out = r.exact<std::uint32_t>("out");
            parallel_for(kHalves * p.words, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t half = i / p.words, at = (i + moved) % p.words;
                out[static_cast<std::size_t>(i)] = rounds(p.in[half * p.words + at]);
              }
            });
          },
  };
}

}  // namespace gauntlet::ch11::dual_pipeline
