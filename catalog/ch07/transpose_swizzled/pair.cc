#include "catalog/ch07/transpose_swizzled/pair.h"

#include <algorithm>
#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::transpose_swizzled {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double bytes = 4.0 * static_cast<double>(knobs["rows"] * knobs["columns"]);
  return {.read_bytes = bytes, .write_bytes = bytes};
}

/// In squares of a cache line each way, because a plain loop takes seconds for the default size of
/// a GPU.
void transpose(const Params& p, std::span<float> out) {
  constexpr std::int64_t kSquare = 16;
  const auto bands = (p.columns + kSquare - 1) / kSquare;
  const auto turn_bands = [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t columns_end = std::min(end * kSquare, p.columns);
    for (std::int64_t top = 0; top < p.rows; top += kSquare) {
      const std::int64_t rows_end = std::min(top + kSquare, p.rows);
      for (std::int64_t column = begin * kSquare; column < columns_end; ++column) {
        for (std::int64_t row = top; row < rows_end; ++row) {
          out[static_cast<std::size_t>(column * p.rows + row)] = p.in[row * p.columns + column];
        }
      }
    }
  };
  parallel_for(bands, turn_bands, 16);
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
      .reference = [](const Params& p, lab::Reference& r) { transpose(p, r.exact<float>("out")); },
  };
}

}  // namespace gauntlet::ch07::transpose_swizzled
