#include "catalog/ch10/dsmem_reduction/pair.h"

#include <cmath>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch10::dsmem_reduction {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const double elements = static_cast<double>(knobs["rows"] * kColumns);
  return {.read_bytes = 4 * elements, .write_bytes = 4 * elements, .flops = 3 * elements};
}

// A root, a division and the product with the result, each correct to an ulp or two.
constexpr double kUlps = 2;

/// Every row by the sum of its squares, some in full.
void reference(const Params& p, lab::Reference& r) {
  // The root halves the relative error of its sum, as a quarter of the terms would.
  const lab::Rounding rounding = {.length = kColumns / 4, .ulps = kUlps};
  const auto rows = r.stratified(p.rows, 64);
  const auto values = r.rows("out", kColumns, rows, rounding);
  const std::vector<double> ones(static_cast<std::size_t>(kColumns), 1.0);
  const auto scale_of = [&](std::int64_t row) {
    return 1 / std::sqrt(lab::weighted_sums(p.in + row * kColumns, ones, ones).squares);
  };
  const auto norms = r.norms("out");
  const double root_length = std::sqrt(static_cast<double>(rounding.length));
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t k = begin; k < end; ++k) {
          const std::int64_t row = rows[static_cast<std::size_t>(k)];
          const double scale = scale_of(row);
          for (std::int64_t i = 0; i < kColumns; ++i) {
            const double value = p.in[row * kColumns + i] * scale;
            values[static_cast<std::size_t>(k * kColumns + i)] = value;
            norms[static_cast<std::size_t>(k * kColumns + i)] = std::abs(value) / root_length;
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
              lab::weighted_sums(p.in + row * kColumns, sums.weights, weights2);
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
      .title = "through global memory → through cluster shared memory",
      .technique = "distributed_shared_memory",
      .knobs = {{.name = "rows",
                 .cuda = 1024,
                 .max = 1 << 20,
                 .help = "rows of 65536 words, eight blocks each"}},
      .cuda =
          lab::BackendFacts{
              .claim = "A row's sum is known only when all of its blocks have added up: through "
                       "global memory that takes a second kernel, which reads the row again; the "
                       "blocks of a cluster wait for each other with the row in registers.",
              .cost = cost,
              .witness = lab::Witness::counter("dram__bytes_read.sum", lab::Witness::Moves::falls,
                                               1.6, "bytes read from memory")},
      .bind =
          [](lab::Binder& b) {
            const auto rows = b.knob("rows");
            return Params{.in = b.input<float>("in", rows * kColumns, lab::Fill::uniform()),
                          .partial = b.scratch<float>("partial", rows * kBlocksPerRow),
                          .out = b.output<float>("out", rows * kColumns),
                          .rows = rows};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch10::dsmem_reduction
