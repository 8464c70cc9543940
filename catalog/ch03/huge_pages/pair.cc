#include "catalog/ch03/huge_pages/pair.h"

#include <algorithm>
#include <span>

#include "core/os/pages.h"
#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch03::huge_pages {

lab::Pair<Params> pair() {
  return {
      .title = "4 KiB → 2 MiB pages under random access",
      .technique = "huge_pages",
      .needs = {"huge pages"},
      .knobs = {{.name = "rows",
                 .cpu = 1 << 21,
                 .max = 1 << 24,
                 .help = "of 64 bytes; more pages of 4 KiB than a TLB has entries"},
                {.name = "lookups",
                 .cpu = 1 << 19,
                 .max = 1 << 24,
                 .help = "rows looked up, no more than there are"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A translation reaches 512 times as far with pages of 2 MiB: "
                       "the TLB holds those of a table in huge pages, so that a lookup misses the "
                       "cache and not the TLB, too.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const auto lookups = static_cast<double>(std::min(k["lookups"], k["rows"]));
                return {.read_bytes = (4 + 8 * kWords) * lookups, .write_bytes = 8 * lookups};
              },
              .witness = lab::Witness::outcome("huge_page_bytes", lab::Witness::Moves::rises, 1000,
                                               "of the table in huge pages, by /proc/self/smaps")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), lookups = b.knob("lookups");
            const std::int64_t words = rows * kWords;
            // The same table twice over: word i and word words + i are alike.
            const auto* both = b.input<std::uint64_t>(
                "table", 2 * words,
                lab::Fill::ranges(
                    [words](void* out, std::int64_t begin, std::int64_t end, const Random& random) {
                      const std::span<std::uint64_t> values(static_cast<std::uint64_t*>(out),
                                                            static_cast<std::size_t>(end - begin));
                      for (std::int64_t i = begin; i < end; ++i) {
                        values[static_cast<std::size_t>(i - begin)] =
                            random.bits(static_cast<std::uint64_t>(i % words));
                      }
                    }));
            Params p{.small = both,
                     .huge = both + words,
                     .index = b.input<std::int32_t>("index", lookups, lab::Fill::permutation(rows)),
                     .out = b.output<std::uint64_t>("out", lookups),
                     .rows = rows,
                     .lookups = lookups};
            // Before there are contents; the pages stay what they are from then on.
            if (p.out != nullptr) {
              use_small_pages(const_cast<std::uint64_t*>(p.small), 8 * words);
              use_huge_pages(const_cast<std::uint64_t*>(p.huge), 8 * words);
            }
            return p;
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint64_t>("out");
            parallel_for(p.lookups, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) {
                std::uint64_t sum = 0;
                for (int word = 0; word < kWords; ++word)
                  sum += p.small[p.index[i] * kWords + word];
                out[i] = sum;
              }
            });
          },
  };
}

}  // namespace gauntlet::ch03::huge_pages
