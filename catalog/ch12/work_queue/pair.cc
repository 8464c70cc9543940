#include "catalog/ch12/work_queue/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::work_queue {

lab::Pair<Params> pair() {
  return {
      .title = "static split of uneven work → queues, and stealing from them",
      .technique = "dynamic_work",
      .knobs = {{.name = "items", .cpu = 1 << 14, .max = 1 << 28, .help = "sequences of the batch"},
                {.name = "longest",
                 .cpu = 256,
                 .max = 1 << 20,
                 .help = "expected steps of the first; of the others fewer and fewer"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "Ranges of as many items are not of as much work, and the workers with short "
                  "ones wait for the one with the long one; a worker that steals half of what "
                  "another has left ends when the others do, whatever the items turn out to be.",
              .cost = [](const lab::Knobs& k) -> lab::Cost {
                const double bytes = 4 * static_cast<double>(k["items"]);
                return {
                    .read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
              },
              .witness = lab::Witness::outcome("last_worker", lab::Witness::Moves::falls, 1.2,
                                               "time until the last worker is done, per time until "
                                               "they are done on average")},
      .bind =
          [](lab::Binder& b) {
            const auto items = b.knob("items");
            return Params{.start = b.input<std::uint32_t>("start", items, lab::Fill::bytes()),
                          .out = b.output<std::uint32_t>("out", items),
                          .items = items,
                          .longest = b.knob("longest")};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<std::uint32_t>("out");
            parallel_for(
                p.items,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t item = begin; item < end; ++item) {
                    out[static_cast<std::size_t>(item)] = continue_sequence(p, item);
                  }
                },
                1024);
          },
  };
}

}  // namespace gauntlet::ch12::work_queue
