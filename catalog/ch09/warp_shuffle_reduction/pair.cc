#include "catalog/ch09/warp_shuffle_reduction/pair.h"

#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch09::warp_shuffle_reduction {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto rows = static_cast<double>(knobs["rows"]);
  const auto columns = static_cast<double>(knobs["columns"]);
  return {.read_bytes = 4 * rows * columns, .write_bytes = 4 * rows, .flops = rows * columns};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "shared-memory tree → shuffles",
      .technique = "warp_shuffles",
      .knobs = {{.name = "rows", .cuda = 1 << 18, .max = 1 << 24, .help = "sums, a block each"},
                {.name = "columns",
                 .cuda = 1024,
                 .min = 4,
                 .max = 1 << 20,
                 .multiple_of = 4,
                 .help = "terms of each sum"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A tree of 256 threads in shared memory has eight rounds with a barrier "
                       "each; shuffles need one barrier and a word of shared memory per warp. On "
                       "long rows, where memory is the limit, that hides behind other blocks.",
              .cost = cost,
              .witness = lab::Witness::counter("smsp__inst_executed_op_shared_ld.sum",
                                               lab::Witness::Moves::falls, 4,
                                               "load instructions from shared memory")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            // Whole numbers: their sums are exact in any order.
            return Params{
                .in = b.input<float>("in", rows * columns, lab::Fill::whole_floats(-2048, 2048)),
                .out = b.output<float>("out", rows),
                .rows = rows,
                .columns = columns};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::span<float> out = r.exact<float>("out");
            parallel_for(
                p.rows,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t row = begin; row < end; ++row) {
                    const float* in = p.in + row * p.columns;
                    float lanes[8] = {};
                    std::int64_t i = 0;
                    for (; i + 8 <= p.columns; i += 8) {
                      for (int lane = 0; lane < 8; ++lane) lanes[lane] += in[i + lane];
                    }
                    for (; i < p.columns; ++i) lanes[0] += in[i];
                    float sum = 0;
                    for (float lane : lanes) sum += lane;
                    out[static_cast<std::size_t>(row)] = sum;
                  }
                },
                16);
          },
  };
}

}  // namespace gauntlet::ch09::warp_shuffle_reduction
