#include "catalog/ch02/zero_copy_small/pair.h"

#include "lab/author/pair.h"

namespace gauntlet::ch02::zero_copy_small {

lab::Pair<Params> pair() {
  return {
      .title = "explicit copies → mapped access below a measured size",
      .technique = "zero_copy",
      .knobs = {{.name = "words",
                 .cpu = 1 << 10,
                 .max = 1 << 26,
                 .help = "of 4 bytes; sweep it to find the size from which copies win"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A kernel that reads and writes a few KiB of host memory over the link pays "
                       "for one trip; two copies in front of and behind it are two commands more. "
                       "From which size on copies win is found by sweeping `words`.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {.read_bytes = bytes,
                        .write_bytes = bytes,
                        .level = lab::Cost::Level::host_link};
              },
              .witness = lab::Witness::outcome("copies", lab::Witness::Moves::falls, 2,
                                               "copies that the stream was handed")},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words");
            return Params{
                .in = b.input<std::uint32_t>("in", words, lab::Fill::bytes(), lab::Memory::pinned),
                .out = b.output<std::uint32_t>("out", words, lab::Memory::pinned),
                .staged = b.scratch<std::uint32_t>("staged", words),
                .words = words};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            for (std::size_t i = 0; i < out.size(); ++i) out[i] = scrambled(p.in[i]);
          },
  };
}

}  // namespace gauntlet::ch02::zero_copy_small
