#include "catalog/ch07/transpose_padded/pair.h"

#include "core/threads.h"
#include "lab/pair.h"

namespace gauntlet::ch07::transpose_padded {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double bytes = 4.0 * static_cast<double>(knobs["rows"] * knobs["columns"]);
  return {.read_bytes = bytes, .write_bytes = bytes};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "naive → tiled through padded shared memory (CPU: naive → cache-blocked)",
      .technique = "shared_memory_tiling",
      .knobs =
          {{.name = "rows", .cpu = 3000, .cuda = 8192, .max = 1 << 20, .help = "rows of the input"},
           {.name = "columns",
            .cpu = 3000,
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

}  // namespace gauntlet::ch07::transpose_padded
