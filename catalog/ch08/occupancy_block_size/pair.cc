#include "catalog/ch08/occupancy_block_size/pair.h"

#include <cmath>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch08::occupancy_block_size {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto count = static_cast<double>(knobs["count"]);
  return {.read_bytes = 8 * count, .write_bytes = 4 * count, .flops = 2 * count};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "small blocks → occupancy-API block",
      .technique = "occupancy_block_size",
      .knobs = {{.name = "count",
                 .cpu = 1 << 25,
                 .max = std::int64_t{1} << 35,
                 .help = "words of x, y and the result; one thread each"}},
      .cuda =
          lab::BackendFacts{
              .kind = lab::Kind::demonstration,
              .claim = "A million blocks of one warp are bound by the rate at which a GPU starts "
                       "blocks; at the occupancy API's size it starts thirty times fewer. That an "
                       "SM then holds twice the warps is the lesser part of the gain.",
              .cost = cost,
              .witness = lab::Witness::counter("sm__ctas_launched.sum", lab::Witness::Moves::falls,
                                               8, "blocks that the SMs started")},
      .metrics =
          {{.name = "block_threads", .unit = "threads", .better = lab::Metric::Better::higher},
           {.name = "resident_warps", .unit = "per SM", .better = lab::Metric::Better::higher}},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.x = b.input<float>("x", count, lab::Fill::uniform()),
                          .y = b.input<float>("y", count, lab::Fill::uniform()),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<float>("out");
            parallel_for(p.count, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t i = begin; i < end; ++i) out[i] = std::fma(kScale, p.x[i], p.y[i]);
            });
          },
  };
}

}  // namespace gauntlet::ch08::occupancy_block_size
