#include "catalog/ch02/cache_tiers/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch02::cache_tiers {

lab::Pair<Params> pair() {
  return {
      .title = "stream the working set from DRAM → keep it in L2/LLC",
      .technique = "cache_blocking",
      .knobs = {{.name = "words",
                 .cpu = 1 << 24,
                 .cuda = 1 << 26,
                 .max = 1 << 28,
                 .multiple_of = 4,
                 .help = "of 4 bytes; several times the last-level cache"},
                {.name = "passes", .cpu = 8, .max = 64, .help = "over all words"},
                {.name = "block_kib",
                 .cpu = 256,
                 .cuda = 16384,
                 .max = 1 << 20,
                 .help =
                     "what goes through all passes before the next; sweep it through the caches"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A block that the second-level cache holds goes through all passes at that "
                       "cache's rate, and through DRAM once; passes over all words fetch them from "
                       "DRAM every time.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {.read_bytes = bytes, .write_bytes = bytes};
              },
              .witness = lab::Witness::counter("cache-misses", lab::Witness::Moves::falls, 2,
                                               "accesses that the cache did not hold")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A block that L2 holds goes through all passes at L2's rate, and through DRAM "
                  "once, at the price of a launch per block and pass.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["words"]);
                return {.read_bytes = bytes, .write_bytes = bytes};
              },
              .witness = lab::Witness::counter("dram__bytes_read.sum", lab::Witness::Moves::falls,
                                               2, "bytes that came from DRAM")},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), passes = b.knob("passes");
            return Params{.in = b.input<std::uint32_t>("in", words, lab::Fill::bytes()),
                          .factor = b.input<std::uint32_t>("factor", passes, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", words),
                          .words = words,
                          .passes = passes,
                          .block_words = b.knob("block_kib") * 256};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            // Passes are affine, and so is what they come to together.
            std::uint32_t factor = 1, offset = 0;
            for (std::int64_t pass = 0; pass < p.passes; ++pass) {
              factor *= p.factor[pass];
              offset = offset * p.factor[pass] + 1;
            }
            const auto out = r.exact<std::uint32_t>("out");
            parallel_for(p.words, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) out[i] = p.in[i] * factor + offset;
            });
          },
  };
}

}  // namespace gauntlet::ch02::cache_tiers
