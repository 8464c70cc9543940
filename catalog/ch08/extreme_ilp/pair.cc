#include "catalog/ch08/extreme_ilp/pair.h"

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch08::extreme_ilp {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto count = static_cast<double>(knobs["count"]);
  return {.read_bytes = 4 * count, .write_bytes = 4 * count, .flops = count};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "high occupancy, one element → low occupancy, eight in flight",
      .technique = "instruction_parallelism",
      .knobs = {{.name = "count",
                 .cpu = 1 << 26,
                 .min = 2048,
                 .max = std::int64_t{1} << 36,
                 .multiple_of = 2048,
                 .help = "words to scale"}},
      .cuda =
          lab::BackendFacts{
              .claim = "What fills the memory system is bytes in flight, not warps: a quarter of "
                       "the threads with eight loads each ask for twice as much as all of them "
                       "with one, on the same resident grid.",
              .cost = cost,
              .witness = lab::Witness::counter("sm__warps_active.avg.pct_of_peak_sustained_active",
                                               lab::Witness::Moves::falls, 2,
                                               "share of the SM's warp slots in use: fewer warps "
                                               "gain nothing, so what gains is loads in flight")},
      .metrics = {{.name = "resident_threads", .unit = "per SM"}},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.in = b.input<float>("in", count, lab::Fill::uniform()),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<float>("out");
            parallel_for(p.count, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) out[i] = kScale * p.in[i];
            });
          },
  };
}

}  // namespace gauntlet::ch08::extreme_ilp
