#include "catalog/ch12/work_queue/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch12::work_queue {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double bytes = 4 * static_cast<double>(knobs["items"]);
  return {.read_bytes = bytes, .write_bytes = bytes, .level = lab::Cost::Level::cache};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "static split of uneven work → queues, and stealing from them",
      .technique = "dynamic_work",
      .knobs = {{.name = "items",
                 .cpu = 1 << 14,
                 .cuda = 1 << 20,
                 .max = 1 << 28,
                 .help = "sequences of the batch"},
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
              .cost = cost,
              .witness = lab::Witness::outcome("last_worker", lab::Witness::Moves::falls, 1.2,
                                               "time until the last worker is done, per time until "
                                               "they are done on average")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "A warp with a sequence per lane is at work until its longest has ended, most "
                  "lanes idle by then; lanes that take the next sequence from a counter as "
                  "soon as theirs has ended keep the warp full.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "smsp__average_thread_inst_executed_per_inst_executed.ratio",
                  lab::Witness::Moves::rises, 1.3, "active lanes per instruction")},
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
