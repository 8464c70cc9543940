#include "catalog/ch10/transaction_barriers/pair.h"

#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch10::transaction_barriers {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto rows = static_cast<double>(knobs["rows"]);
  const auto columns = static_cast<double>(kColumns);
  return {.read_bytes = 4 * rows * columns, .write_bytes = 4 * rows, .flops = rows * columns};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "wait for all → per-tile completion counts",
      .technique = "transaction_barriers",
      .knobs = {{.name = "rows",
                 .cuda = 1 << 18,
                 .max = 1 << 26,
                 .help = "rows of 1024 words; a row is a tile"}},
      .cuda =
          lab::BackendFacts{
              .claim = "With one count for eight tiles every warp waits for the last of them, and "
                       "the next eight wait for the slowest warp; with a count per tile a warp "
                       "waits for its own bytes alone.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
                  lab::Witness::Moves::falls, 2, "warps waiting for other warps, per issue")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows");
            // Whole numbers: their sums are exact in any order.
            return Params{
                .in = b.input<float>("in", rows * kColumns, lab::Fill::whole_floats(-2048, 2048)),
                .out = b.output<float>("out", rows),
                .rows = rows};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::span<float> out = r.exact<float>("out");
            parallel_for(
                p.rows,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t row = begin; row < end; ++row) {
                    const float* in = p.in + row * kColumns;
                    float lanes[8] = {};
                    std::int64_t i = 0;
                    for (; i + 8 <= kColumns; i += 8) {
                      for (int lane = 0; lane < 8; ++lane) lanes[lane] += in[i + lane];
                    }
                    for (; i < kColumns; ++i) lanes[0] += in[i];
                    float sum = 0;
                    for (float lane : lanes) sum += lane;
                    out[static_cast<std::size_t>(row)] = sum;
                  }
                },
                16);
          },
  };
}

}  // namespace gauntlet::ch10::transaction_barriers
