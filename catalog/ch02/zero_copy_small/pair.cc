#include "catalog/ch02/zero_copy_small/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch02::zero_copy_small {

lab::Pair<Params> pair() {
  const auto crossover = std::make_shared<Crossover>();
  return {
      .title = "explicit copies → mapped access below a measured size",
      .technique = "zero_copy",
      .knobs = {{.name = "words",
                 .cpu = 1 << 10,
                 .max = 1 << 26,
                 .help = "of 4 bytes; sweep it across `crossover_bytes`"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A kernel that reads and writes a few KiB of host memory over the link pays "
                       "for one trip; two copies in front of and behind it are two commands more. "
                       "From `crossover_bytes` on copies win: both sides at sizes of 256 B to "
                       "8 MiB, timed once in each process before anything else is.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {.read_bytes = bytes,
                        .write_bytes = bytes,
                        .level = lab::Cost::Level::host_link};
              },
              .witness = lab::Witness::fact("copies", lab::Witness::Moves::falls, 2,
                                            "copies in the graph that a run is captured to")},
      .metrics = {{.name = "crossover_bytes", .unit = "B, from which on copies win"}},
      .bind =
          [crossover](lab::Binder& b) {
            const auto words = b.knob("words");
            return Params{
                .in = b.input<std::uint32_t>("in", words, lab::Fill::bytes(), lab::Memory::pinned),
                .out = b.output<std::uint32_t>("out", words, lab::Memory::pinned),
                .staged = b.scratch<std::uint32_t>("staged", words),
                .words = words,
                .crossover = crossover};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = scrambled(p.in[i]);
          },
  };
}

}  // namespace gauntlet::ch02::zero_copy_small
