#include "catalog/ch09/fused_elementwise/pair.h"

#include <algorithm>
#include <span>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch09::fused_elementwise {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto columns = static_cast<double>(knobs["columns"]);
  const double elements = static_cast<double>(knobs["rows"]) * columns;
  return {
      .read_bytes = 8 * elements + 8 * columns, .write_bytes = 4 * elements, .flops = 4 * elements};
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "kernel per op → one kernel",
      .technique = "kernel_fusion",
      .knobs = {{.name = "rows", .cpu = 3072, .cuda = 16384, .max = 1 << 20, .help = "rows"},
                {.name = "columns",
                 .cpu = 4096,
                 .max = 1 << 20,
                 .multiple_of = 4,
                 .help = "words per row, scales and biases"}},
      .cpu = lab::BackendFacts{.claim = "Four passes over an array that no cache holds fetch it "
                                        "again each time; one pass fetches the inputs once and "
                                        "keeps what is in between in registers.",
                               .cost = cost,
                               .witness = lab::Witness::counter(
                                   "L1-dcache-load-misses", lab::Witness::Moves::falls, 2,
                                   "loads that miss the first-level cache")},
      .cuda = lab::BackendFacts{.claim = "Four kernels write what is in between to memory and read "
                                         "it again, and each is bound by that; one kernel reads "
                                         "the inputs and writes the result.",
                                .cost = cost,
                                .witness = lab::Witness::counter(
                                    "dram__bytes.sum", lab::Witness::Moves::falls, 2,
                                    "bytes between memory and L2, either way")},
      .bind =
          [](lab::Binder& b) {
            // Whole numbers below 2^24 all the way, so that every order of roundings gives the same
            // bits, and a type with fewer bits does not.
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            const auto whole = [](std::int64_t bound) {
              return lab::Fill::whole_floats(-bound, bound);
            };
            return Params{.in = b.input<float>("in", rows * columns, whole(2048)),
                          .residual = b.input<float>("residual", rows * columns, whole(1 << 20)),
                          .scale = b.input<float>("scale", columns, whole(1024)),
                          .bias = b.input<float>("bias", columns, whole(1 << 20)),
                          .out = b.output<float>("out", rows * columns),
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
                    const std::int64_t first = row * p.columns;
                    for (std::int64_t i = 0; i < p.columns; ++i) {
                      out[static_cast<std::size_t>(first + i)] =
                          std::max(p.in[first + i] * p.scale[i] + p.bias[i], 0.0f) +
                          p.residual[first + i];
                    }
                  }
                },
                16);
          },
  };
}

}  // namespace gauntlet::ch09::fused_elementwise
