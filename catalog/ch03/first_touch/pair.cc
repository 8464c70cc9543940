#include "catalog/ch03/first_touch/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch03::first_touch {

lab::Pair<Params> pair() {
  return {
      .title = "serial → parallel first touch",
      .technique = "first_touch",
      .needs = {"2 NUMA nodes"},
      .knobs =
          {{.name = "words", .cpu = 1 << 23, .max = 1 << 28, .help = "of 8 bytes in the table"},
           {.name = "passes", .cpu = 8, .max = 256, .help = "over the table, by all threads"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "A page is put on the node of the thread that first touches it: a table that "
                  "one thread zeroed is on one node, one that its users zeroed is by their "
                  "side. Making the table is outside of the time.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 8 * static_cast<double>(k["words"]);
                return {.read_bytes = bytes, .write_bytes = bytes};
              },
              .witness =
                  lab::Witness::outcome("local_share", lab::Witness::Moves::rises, 2,
                                        "of a worker's part of the table on its own node, by "
                                        "move_pages(); the least of all workers")},
      .bind =
          [](lab::Binder& b) {
            const auto words = b.knob("words"), passes = b.knob("passes");
            return Params{.in = b.input<std::uint64_t>("in", words, lab::Fill::bytes()),
                          .factor = b.input<std::uint64_t>("factor", passes, lab::Fill::bytes()),
                          .out = b.output<std::uint64_t>("out", words),
                          .words = words,
                          .passes = passes};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            std::uint64_t factor = 1, offset = 0;
            for (std::int64_t pass = 0; pass < p.passes; ++pass) {
              factor *= p.factor[pass];
              offset = offset * p.factor[pass] + 1;
            }
            const auto out = r.exact<std::uint64_t>("out");
            parallel_for(p.words, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) out[i] = p.in[i] * factor + offset;
            });
          },
  };
}

}  // namespace gauntlet::ch03::first_touch
