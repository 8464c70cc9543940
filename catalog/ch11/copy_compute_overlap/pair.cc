#include "catalog/ch11/copy_compute_overlap/pair.h"

#include "core/affine_rounds.h"
#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch11::copy_compute_overlap {
namespace {

double bytes_of(const lab::Knobs& knobs) { return 4 * static_cast<double>(knobs["words"]); }

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "one stream → copies in both directions and kernels overlapped",
      .technique = "copy_compute_overlap",
      .knobs = {{.name = "words",
                 .cpu = 1 << 24,
                 .min = kChunks * kBlockWords,
                 .max = 1 << 28,
                 .multiple_of = kChunks * kBlockWords,
                 .help = "of 4 bytes, in 16 chunks"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A GPU has a copy engine for each direction beside its SMs; chunks on several "
                  "streams keep all three at work, where one stream uses one at a time.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                return {.read_bytes = bytes_of(k),
                        .write_bytes = bytes_of(k),
                        .level = lab::Cost::Level::host_link};
              },
              .witness = lab::Witness::trace("at_a_time", lab::Witness::Moves::rises, 1.3,
                                             "kernels and copies under way while any was")},
      .metrics = {{.name = "link rate",
                   .unit = "B/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = [](const lab::Knobs& k) { return 2 * bytes_of(k); }}},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words");
            return Params{
                .in = b.input<std::uint32_t>("in", words, lab::Fill::bytes(), lab::Memory::pinned),
                .factor = b.input<std::uint32_t>("factor", kRounds, lab::Fill::bytes()),
                .device = b.scratch<std::uint32_t>("device", words),
                .out = b.output<std::uint32_t>("out", words, lab::Memory::pinned),
                .words = words};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            AffineRounds rounds;
            for (int round = 0; round < kRounds; ++round) rounds.add(p.factor[round]);
            const auto out = r.exact<std::uint32_t>("out");
            parallel_for(p.words, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                out[static_cast<std::size_t>(i)] = rounds(p.in[i]);
              }
            });
          },
  };
}

}  // namespace gauntlet::ch11::copy_compute_overlap
