#include "catalog/ch07/tma_tile_2d/pair.h"

#include <span>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch07::tma_tile_2d {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto elements = static_cast<double>(knobs["rows"] * knobs["columns"]);
  return {.read_bytes = 4 * elements, .write_bytes = 4 * elements, .flops = 5 * elements};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "hand-indexed tiles → 2-D tensor map",
      .technique = "tma_tensor_map",
      .knobs = {{.name = "rows", .cuda = 8192, .max = 1 << 20, .help = "rows of the matrix"},
                {.name = "columns",
                 .cuda = 8192,
                 .min = 4,
                 .max = 1 << 20,
                 .multiple_of = 4,
                 .help = "words per row; a tensor map's rows are multiples of 16 bytes"}},
      .cuda =
          lab::BackendFacts{
              .claim = "The copy engine does the address arithmetic, the bounds checks and the "
                       "zeros of the halo; bandwidth gains little where occupancy already hid "
                       "them. The maps are encoded once, by the host and outside of the time.",
              .cost = cost,
              .witness = lab::Witness::counter("smsp__inst_executed_op_global_ld.sum",
                                               lab::Witness::Moves::falls, 10,
                                               "global load instructions")},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            return Params{
                .in = b.input<float>("in", rows * columns, lab::Fill::whole_floats(-2048, 2048)),
                .out = b.output<float>("out", rows * columns),
                .rows = rows,
                .columns = columns};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::span<float> out = r.exact<float>("out");
            const std::vector<float> zeros(static_cast<std::size_t>(p.columns));
            const auto row_at = [&](std::int64_t row) {
              return row >= 0 && row < p.rows ? p.in + row * p.columns : zeros.data();
            };
            parallel_for(
                p.rows,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t row = begin; row < end; ++row) {
                    const float *up = row_at(row - 1), *here = row_at(row), *down = row_at(row + 1);
                    float* to = out.data() + row * p.columns;
                    const std::int64_t last = p.columns - 1;
                    for (std::int64_t i = 1; i < last; ++i) {
                      to[i] = 4 * here[i] - up[i] - down[i] - here[i - 1] - here[i + 1];
                    }
                    to[0] = 4 * here[0] - up[0] - down[0] - here[1];
                    to[last] = 4 * here[last] - up[last] - down[last] - here[last - 1];
                  }
                },
                1);
          },
  };
}

}  // namespace gauntlet::ch07::tma_tile_2d
