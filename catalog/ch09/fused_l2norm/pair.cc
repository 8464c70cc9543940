#include "catalog/ch09/fused_l2norm/pair.h"

#include <cmath>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch09::fused_l2norm {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double elements = static_cast<double>(knobs["rows"] * knobs["columns"]);
  return {.read_bytes = 4 * elements, .write_bytes = 4 * elements, .flops = 3 * elements};
}

// A root, a division and the product with the result, each correct to an ulp or two.
constexpr double kUlps = 2;

/// Every row by the sum of its squares, some in full.
void reference(const Params& p, lab::Reference& r) {
  // The root halves the relative error of its sum, as a quarter of the terms would.
  const lab::Rounding rounding = {.length = p.columns / 4, .ulps = kUlps};
  const auto rows = r.stratified(p.rows, 64);
  const auto values = r.rows("out", p.columns, rows, rounding);
  const std::vector<double> ones(static_cast<std::size_t>(p.columns), 1.0);
  const auto scale_of = [&](std::int64_t row) {
    return 1 / std::sqrt(lab::weighted_sums(p.in + row * p.columns, ones, ones).squares);
  };
  const auto norms = r.norms("out");
  const double root_length = std::sqrt(static_cast<double>(rounding.length));
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          const std::int64_t row = rows[static_cast<std::size_t>(k)];
          const double scale = scale_of(row);
          for (std::int64_t i = 0; i < p.columns; ++i) {
            const double value = p.in[row * p.columns + i] * scale;
            values[static_cast<std::size_t>(k * p.columns + i)] = value;
            norms[static_cast<std::size_t>(k * p.columns + i)] = std::abs(value) / root_length;
          }
        }
      },
      4);

  const lab::RowSums sums = r.row_sums("out");
  std::vector<double> weights2(sums.weights.size());
  for (std::size_t i = 0; i < weights2.size(); ++i) {
    weights2[i] = sums.weights[i] * sums.weights[i];
  }
  parallel_for(
      p.rows,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const double scale = scale_of(row);
          const lab::WeightedSums in =
              lab::weighted_sums(p.in + row * p.columns, sums.weights, weights2);
          sums.sums[static_cast<std::size_t>(row)] = scale * in.sum;
          sums.squares[static_cast<std::size_t>(row)] =
              scale * scale * in.squares / static_cast<double>(rounding.length);
        }
      },
      16);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "three passes → one",
      .technique = "kernel_fusion",
      .knobs = {{.name = "rows", .cpu = 8192, .cuda = 32768, .max = 1 << 24, .help = "rows"},
                {.name = "columns",
                 .cpu = 2048,
                 .cuda = 4096,
                 .min = 32,
                 .max = kMaxColumns,
                 .multiple_of = 32,
                 .help = "words per row"}},
      .cpu = lab::BackendFacts{.claim = "Squares that go to memory and come back, and rows that "
                                        "are fetched a second time, are what two of the three "
                                        "passes cost; row by row there is one fetch and one store.",
                               .cost = cost,
                               .witness = lab::Witness::counter(
                                   "L1-dcache-load-misses", lab::Witness::Moves::falls, 2,
                                   "loads that miss the first-level cache")},
      .cuda = lab::BackendFacts{.claim = "Three kernels move five arrays of the matrix's size; one "
                                         "block per row that keeps it in registers until its sum "
                                         "is known moves two.",
                                .cost = cost,
                                .witness = lab::Witness::counter(
                                    "dram__bytes.sum", lab::Witness::Moves::falls, 1.8,
                                    "bytes between memory and L2, either way")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows"), columns = b.knob("columns");
            return Params{.in = b.input<float>("in", rows * columns, lab::Fill::uniform()),
                          .squares = b.scratch<float>("squares", rows * columns),
                          .scales = b.scratch<float>("scales", rows),
                          .out = b.output<float>("out", rows * columns),
                          .rows = rows,
                          .columns = columns};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch09::fused_l2norm
