#include "catalog/ch07/bank_conflicts/pair.h"

#include <cmath>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::bank_conflicts {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double rows = static_cast<double>(knobs["rows"]);
  return {
      .read_bytes = 4 * kColumns * rows, .write_bytes = 4 * rows, .flops = (kColumns - 1) * rows};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "32-way conflicts → conflict-free",
      .technique = "bank_conflict_avoidance",
      .knobs = {{.name = "rows",
                 .cuda = 1 << 21,
                 .help = "rows of 32 floats, one thread sums each"}},
      .cuda =
          lab::BackendFacts{
              .kind = lab::Kind::demonstration,
              .claim = "Rows of 32 words put a column into one bank, so a warp that reads it waits "
                       "32 times; one word of padding per row spreads it over all banks.",
              .cost = cost,
              .witness = lab::Witness::counter("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
                                               lab::Witness::Moves::falls, 8,
                                               "cycles spent on bank conflicts")},
      .metrics = {{.name = "shared_bytes", .unit = "B per block"}},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows");
            return Params{.in = b.input<float>("in", rows * kColumns, lab::Fill::uniform()),
                          .sums = b.output<float>("sums", rows),
                          .rows = rows};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto sums = r.values("sums", {.length = kColumns});
            const auto norms = r.norms("sums");
            parallel_for(p.rows, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t row = begin; row < end; ++row) {
                double sum = 0, squares = 0;
                for (int column = 0; column < kColumns; ++column) {
                  const double value = p.in[row * kColumns + column];
                  sum += value;
                  squares += value * value;
                }
                sums[static_cast<std::size_t>(row)] = sum;
                norms[static_cast<std::size_t>(row)] = std::sqrt(squares);
              }
            });
          },
  };
}

}  // namespace gauntlet::ch07::bank_conflicts
