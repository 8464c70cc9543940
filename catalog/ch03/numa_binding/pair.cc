#include "catalog/ch03/numa_binding/pair.h"

#include <span>

#include "core/check.h"
#include "core/machine/numa.h"
#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch03::numa_binding {
namespace {

void bind_or_fail(const std::uint64_t* words, std::int64_t bytes, int node) {
  const auto bound = bind_memory(const_cast<std::uint64_t*>(words), bytes, node);
  if (!bound) fail(bound.error().message);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "remote memory → bound to the local node",
      .technique = "memory_binding",
      .needs = {"2 NUMA nodes"},
      .knobs = {{.name = "rows", .cpu = 1 << 14, .max = 1 << 20, .help = "of 4 KiB"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "Reads of the thread's own node do not cross the link between sockets, which "
                  "is slower and farther than the memory's own channels.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const auto rows = static_cast<double>(k["rows"]);
                return {.read_bytes = 8 * kRowWords * rows, .write_bytes = 8 * rows};
              },
              .witness =
                  lab::Witness::outcome("local_share", lab::Witness::Moves::rises, 10,
                                        "of the pages that are read on the thread's node, by "
                                        "move_pages()")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows");
            const std::int64_t words = rows * kRowWords;
            // The same words twice over, for a node each.
            const auto* both = b.input<std::uint64_t>(
                "words", 2 * words,
                lab::Fill::ranges(
                    [words](void* out, std::int64_t begin, std::int64_t end, const Random& random) {
                      const std::span<std::uint64_t> values(static_cast<std::uint64_t*>(out),
                                                            static_cast<std::size_t>(end - begin));
                      for (std::int64_t i = begin; i < end; ++i) {
                        values[static_cast<std::size_t>(i - begin)] =
                            random.bits(static_cast<std::uint64_t>(i % words));
                      }
                    }));
            Params p{.remote = both,
                     .local = both + words,
                     .out = b.output<std::uint64_t>("out", rows),
                     .rows = rows};
            if (p.out != nullptr) {
              const auto places = places_here();
              if (!places) fail(places.error().message);
              bind_or_fail(p.remote, 8 * words, places->remote);
              bind_or_fail(p.local, 8 * words, places->local);
            }
            return p;
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint64_t>("out");
            parallel_for(p.rows, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t row = begin; row < end; ++row) {
                std::uint64_t sum = 0;
                for (std::int64_t i = 0; i < kRowWords; ++i) sum += p.local[row * kRowWords + i];
                out[row] = sum;
              }
            });
          },
  };
}

}  // namespace gauntlet::ch03::numa_binding
