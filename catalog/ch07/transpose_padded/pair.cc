#include "catalog/ch07/transpose_padded/pair.h"

#include <algorithm>
#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::transpose_padded {
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
      .title = "naive → tiled through padded shared memory (CPU: naive → cache-blocked)",
      .technique = "shared_memory_tiling",
      .knobs =
          {{.name = "rows", .cpu = 4000, .cuda = 8192, .max = 1 << 20, .help = "rows of the input"},
           {.name = "columns",
            .cpu = 4000,
            .cuda = 8192,
            .max = 1 << 20,
            .help = "columns of the input"}},
      .cpu =
          lab::BackendFacts{
              .claim = "Reading down a column uses 4 bytes of each cache line before the line is "
                       "gone; a tile that fits the cache uses all of it.",
              .cost = cost,
              .witness = lab::Witness::counter("L1-dcache-load-misses", lab::Witness::Moves::falls,
                                               3, "loads that miss the first-level cache")},
      .cuda =
          lab::BackendFacts{
              .claim = "A tile in shared memory turns stores of 32 sectors per request into "
                       "stores of 4, and one word of padding per row keeps its columns free of "
                       "bank conflicts.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
                  lab::Witness::Moves::falls, 4, "sectors per global store request")},
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

}  // namespace gauntlet::ch07::transpose_padded
