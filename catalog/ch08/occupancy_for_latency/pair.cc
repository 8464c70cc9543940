#include "catalog/ch08/occupancy_for_latency/pair.h"

#include <cmath>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch08::occupancy_for_latency {
namespace {

constexpr double kSectorBytes = 32;  // the least a GPU reads of its memory

lab::Cost cost(const lab::Knobs& knobs) {
  const auto count = static_cast<double>(knobs["count"]);
  const double sectors = 4 * static_cast<double>(knobs["entries"]) / kSectorBytes;
  // Random draws touch this many sectors of the table at least once.
  const double touched = sectors * (1 - std::exp(-count / sectors));
  return {.read_bytes = 4 * count + kSectorBytes * touched, .write_bytes = 4 * count};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "1 block per SM → enough warps to hide latency",
      .technique = "latency_hiding",
      .knobs = {{.name = "count", .cpu = 1 << 24, .help = "lookups"},
                {.name = "entries",
                 .cpu = 1 << 26,
                 .max = (std::int64_t{1} << 31) - 1,
                 .help = "words in the table, read at random"}},
      .cuda =
          lab::BackendFacts{
              .kind = lab::Kind::demonstration,
              .claim = "A lookup waits for its index and then for the table; eight warps per SM "
                       "leave the memory idle meanwhile, and as many as fit keep it busy.",
              .cost = cost,
              .witness = lab::Witness::counter("sm__warps_active.avg.pct_of_peak_sustained_active",
                                               lab::Witness::Moves::rises, 3,
                                               "share of the SM's warp slots in use")},
      .metrics = {{.name = "resident_warps",
                   .unit = "per SM",
                   .better = lab::Metric::Better::higher},
                  {.name = "lookups",
                   .unit = "per second",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = [](const lab::Knobs& k) { return static_cast<double>(k["count"]); }}},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count"), entries = b.knob("entries");
            return Params{
                .index = b.input<std::int32_t>("index", count, lab::Fill::integers(0, entries)),
                .table = b.input<float>("table", entries, lab::Fill::uniform()),
                .out = b.output<float>("out", count),
                .count = count,
                .entries = entries};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<float>("out");
            parallel_for(p.count, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) out[i] = p.table[p.index[i]];
            });
          },
  };
}

}  // namespace gauntlet::ch08::occupancy_for_latency
