#include "catalog/ch08/loop_unrolling/pair.h"

#include "core/threads.h"
#include "lab/pair.h"

namespace gauntlet::ch08::loop_unrolling {
namespace {

lab::Cost cost(const lab::Knobs& knobs, lab::Cost::Level level) {
  const auto rows = static_cast<double>(knobs["rows"]);
  const auto columns = static_cast<double>(knobs["columns"]);
  return {.read_bytes = 4 * rows * columns,
          .write_bytes = 4 * rows,
          .flops = 2 * rows * columns,
          .level = level};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "one accumulator → several independent",
      .technique = "independent_accumulators",
      .knobs = {{.name = "rows",
                 .cpu = 32,
                 .cuda = 128,
                 .max = 1 << 24,
                 .help = "rows to take the squared norm of; on a GPU one block each"},
                {.name = "columns",
                 .cpu = 4096,
                 .cuda = 1 << 19,
                 .min = 4096,
                 .multiple_of = 4096,
                 .help = "words per row"}},
      .cpu =
          lab::BackendFacts{
              .claim = "A float sum must be added in order, so one accumulator pays the latency "
                       "of an addition per word; 32 accumulators are four vectors in flight.",
              .cost = [](const lab::Knobs& k) { return cost(k, lab::Cost::Level::cache); },
              .witness = lab::Witness::counter("instructions", lab::Witness::Moves::falls, 2,
                                               "instructions per run: independent sums share "
                                               "vector instructions")},
      .cuda =
          lab::BackendFacts{
              .claim = "With one block per SM there are too few warps to cover a load: eight "
                       "accumulators per thread keep eight loads in flight where the "
                       "compiler's own unrolling keeps four.",
              .cost = [](const lab::Knobs& k) { return cost(k, lab::Cost::Level::dram); },
              .witness = lab::Witness::counter(
                  "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
                  lab::Witness::Moves::falls, 1.2,
                  "warps waiting for a load at each issued instruction")},
      .metrics = {{.name = "registers", .unit = "per thread"}},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            return Params{.in = b.input<float>("in", rows * columns, lab::Fill::uniform()),
                          .out = b.output<float>("out", rows),
                          .rows = rows,
                          .columns = columns};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.values("out", {.length = p.columns});
            parallel_for(
                p.rows,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t row = begin; row < end; ++row) {
                    double sum = 0;
                    for (std::int64_t i = 0; i < p.columns; ++i) {
                      const double value = p.in[row * p.columns + i];
                      sum += value * value;
                    }
                    out[row] = sum;
                  }
                },
                1);
          },
  };
}

}  // namespace gauntlet::ch08::loop_unrolling
