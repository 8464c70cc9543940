#include "catalog/ch07/readonly_lookup/pair.h"

#include <algorithm>
#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::readonly_lookup {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto lookups = static_cast<double>(knobs["lookups"]);
  const auto touched = std::min(lookups, static_cast<double>(knobs["entries"]));
  return {.read_bytes = 4 * (lookups + touched), .write_bytes = 4 * lookups};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "plain → read-only path",
      .technique = "read_only_path",
      .knobs = {{.name = "entries",
                 .cuda = 1 << 14,
                 .max = 1 << 28,
                 .help = "words of the table; 64 KiB fit in L1"},
                {.name = "lookups", .cuda = 1 << 25, .max = 1 << 28, .help = "words looked up"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A load known to be read-only may move above the stores before it, so a "
                       "thread has several lookups in flight; the way through the caches is the "
                       "same since Volta, so full occupancy may leave nothing to gain.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
                  lab::Witness::Moves::falls, 1.1, "warps waiting for a load, per issue")},
      .bind =
          [](lab::Binder& b) {
            const auto entries = b.knob("entries"), lookups = b.knob("lookups");
            return Params{
                .table = b.input<float>("table", entries, lab::Fill::uniform()),
                .index = b.input<std::int32_t>("index", lookups, lab::Fill::integers(0, entries)),
                .out = b.output<float>("out", lookups),
                .entries = entries,
                .lookups = lookups};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::span<float> out = r.exact<float>("out");
            parallel_for(p.lookups, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) out[i] = p.table[p.index[i]];
            });
          },
  };
}

}  // namespace gauntlet::ch07::readonly_lookup
