#include "catalog/ch12/tail_packing/pair.h"

#include "core/affine_rounds.h"
#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::tail_packing {

lab::Pair<Params> pair() {
  return {
      .title = "uneven tail → repacked last wave",
      .technique = "tail_packing",
      .knobs = {{.name = "tiles",
                 .cpu = 272,
                 .max = 1 << 16,
                 .help = "of a block each; 272 are two waves of 132 SMs and 8 more"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "When tiles do not divide by the blocks that fit the GPU, the last wave takes "
                  "as long as the others with most SMs idle; its tiles cut into sixteenths, "
                  "which are whole blocks, are spread over all of them.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4.0 * kTileWords * static_cast<double>(k["tiles"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::counter(
                  "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", lab::Witness::Moves::rises,
                  1.15, "share of the time in which an SM has a block")},
      .bind =
          [](lab::Binder& b) {
            const auto tiles = b.knob("tiles");
            return Params{
                .in = b.input<std::uint32_t>("in", tiles * kTileWords, lab::Fill::bytes()),
                .factor = b.input<std::uint32_t>("factor", kRounds, lab::Fill::bytes()),
                .out = b.output<std::uint32_t>("out", tiles * kTileWords),
                .tiles = tiles};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            AffineRounds rounds;
            for (int round = 0; round < kRounds; ++round) rounds.add(p.factor[round]);
            const auto out = r.exact<std::uint32_t>("out");
            parallel_for(p.tiles * kTileWords, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                out[static_cast<std::size_t>(i)] = rounds(p.in[i]);
              }
            });
          },
  };
}

}  // namespace gauntlet::ch12::tail_packing
