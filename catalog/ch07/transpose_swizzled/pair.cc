#include "catalog/ch07/transpose_swizzled/pair.h"

#include "core/threads.h"
#include "lab/pair.h"

namespace gauntlet::ch07::transpose_swizzled {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double bytes = 4.0 * static_cast<double>(knobs["rows"] * knobs["columns"]);
  return {.read_bytes = bytes, .write_bytes = bytes};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "padding → XOR swizzle, same conflicts, less memory",
      .technique = "bank_swizzle",
      .goal = lab::Goal::memory,
      .goal_metric = "shared_bytes",
      .knobs = {{.name = "rows",
                 .cuda = 8192,
                 .max = 1 << 20,
                 .multiple_of = 4,
                 .help = "rows of the input"},
                {.name = "columns",
                 .cuda = 8192,
                 .max = 1 << 20,
                 .multiple_of = 4,
                 .help = "columns of the input"}},
      .cuda =
          lab::BackendFacts{
              .claim = "Exchanging a tile's columns by the row number spreads them over the banks "
                       "as padding does, at the same speed and without its 3% of shared memory.",
              .cost = cost,
              .witness = lab::Witness::fact("shared_bytes", lab::Witness::Moves::falls, 1.03,
                                            "shared memory per block")},
      .metrics = {{.name = "shared_bytes", .unit = "B per block"}},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            return Params{.in = b.input<float>("in", rows * columns, lab::Fill::uniform()),
                          .out = b.output<float>("out", rows * columns),
                          .rows = rows,
                          .columns = columns};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const auto out = r.exact<float>("out");
            parallel_for(
                p.columns,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t row = 0; row < p.rows; ++row) {
                    for (std::int64_t column = begin; column < end; ++column) {
                      out[static_cast<std::size_t>(column * p.rows + row)] =
                          p.in[row * p.columns + column];
                    }
                  }
                },
                64);
          },
  };
}

}  // namespace gauntlet::ch07::transpose_swizzled
