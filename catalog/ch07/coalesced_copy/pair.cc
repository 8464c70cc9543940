#include "catalog/ch07/coalesced_copy/pair.h"

#include <algorithm>

#include "lab/author/pair.h"

namespace gauntlet::ch07::coalesced_copy {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double bytes = 4.0 * static_cast<double>(knobs["rows"] * knobs["columns"]);
  return {.read_bytes = bytes, .write_bytes = bytes};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "strided → adjacent lanes, adjacent words (CPU: stride → unit stride)",
      .technique = "coalescing",
      .knobs = {{.name = "rows",
                 .cpu = 4096,
                 .cuda = 1 << 21,
                 .min = 256,
                 .multiple_of = 256,
                 .help = "rows of the matrix; on a GPU one thread of the baseline copies one row"},
                {.name = "columns", .cpu = 4000, .cuda = 32, .help = "words per row"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "Walking memory in address order uses every word of a cache line before leaving "
                  "it; down a column the line is gone again when its next word is due. Both sides "
                  "copy single words.",
              .cost = cost,
              .witness = lab::Witness::counter("L1-dcache-load-misses", lab::Witness::Moves::falls,
                                               4, "loads that miss the first-level cache")},
      .cuda =
          lab::BackendFacts{
              .claim = "A warp whose lanes read adjacent words needs 4 sectors per request instead "
                       "of 32.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
                  lab::Witness::Moves::falls, 4, "sectors per global load request")},
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
            std::copy_n(p.in, p.rows * p.columns, r.exact<float>("out").data());
          },
  };
}

}  // namespace gauntlet::ch07::coalesced_copy
