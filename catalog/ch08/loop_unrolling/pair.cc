#include "catalog/ch08/loop_unrolling/pair.h"

#include <cmath>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch08::loop_unrolling {
namespace {

lab::Cost cost(const lab::Knobs& knobs, lab::Cost::Level level) {
  const auto rows = static_cast<double>(knobs["rows"]);
  const auto columns = static_cast<double>(knobs["columns"]);
  return {.read_bytes = 4 * rows * columns,
          .write_bytes = 4 * columns,
          .flops = rows * columns,
          .level = level};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "one accumulator → several independent",
      .technique = "independent_accumulators",
      .knobs = {{.name = "rows",
                 .cpu = 1 << 18,
                 .cuda = 4096,
                 .min = 8,
                 .multiple_of = 8,
                 .help = "terms of each sum"},
                {.name = "columns",
                 .cpu = 1,
                 .cuda = 1 << 14,
                 .max = std::int64_t{1} << 36,
                 .help = "sums; on a GPU one thread each"}},
      .cpu =
          lab::BackendFacts{
              .claim = "Float additions keep their order, so one accumulator pays the latency of "
                       "an addition per term; eight accumulators pay it once for eight terms.",
              .cost = [](const lab::Knobs& k) { return cost(k, lab::Cost::Level::cache); },
              .witness = lab::Witness::none(
                  "the same additions in fewer cycles: the time itself is the evidence")},
      .cuda =
          lab::BackendFacts{
              .claim = "A thread per column leaves an SM with four warps, too few to cover a load; "
                       "eight independent sums per thread let several times as many loads be in "
                       "flight.",
              .cost = [](const lab::Knobs& k) { return cost(k, lab::Cost::Level::dram); },
              .witness = lab::Witness::counter(
                  "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
                  lab::Witness::Moves::falls, 1.5,
                  "warps waiting for a load at each issued instruction")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            return Params{.in = b.input<float>("in", rows * columns, lab::Fill::uniform()),
                          .out = b.output<float>("out", columns),
                          .rows = rows,
                          .columns = columns};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto sums = r.values("out", {.length = p.rows});
            const auto norms = r.norms("out");
            parallel_for(
                p.columns,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t row = 0; row < p.rows; ++row) {
                    const float* in = p.in + row * p.columns;
                    for (std::int64_t column = begin; column < end; ++column) {
                      const double term = in[column];
                      sums[column] += term;
                      norms[column] += term * term;
                    }
                  }
                  for (std::int64_t column = begin; column < end; ++column) {
                    norms[column] = std::sqrt(norms[column]);
                  }
                },
                64);
          },
  };
}

}  // namespace gauntlet::ch08::loop_unrolling
