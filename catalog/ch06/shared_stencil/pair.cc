#include "catalog/ch06/shared_stencil/pair.h"

#include <cmath>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch06::shared_stencil {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto count = static_cast<double>(knobs["count"]);
  return {.read_bytes = 4 * (count + 2 * kRadius),
          .write_bytes = 4 * count,
          .flops = 2 * count * kTaps};
}

void reference(const Params& p, lab::Reference& r) {
  const auto rows = r.stratified(p.count / kRow, 64);
  const auto values = r.rows("out", kRow, rows, {.length = kTaps});
  const auto norms = r.norms("out");
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const float* in = p.in + rows[i] * kRow;
          double* value = values.data() + i * kRow;
          double* norm = norms.data() + i * kRow;
          for (int tap = 0; tap < kTaps; ++tap) {
            const double factor = weight(tap);
            for (int k = 0; k < kRow; ++k) {
              const double term = factor * in[k + tap];
              value[k] += term;
              norm[k] += term * term;
            }
          }
          for (int k = 0; k < kRow; ++k) norm[k] = std::sqrt(norm[k]);
        }
      },
      16);

  // Σ_i w_i Σ_t c_t·in[i + t] = Σ_k in[k]·d_k with d_k = Σ_t c_t·w_(k - t), the same for all rows.
  const lab::RowSums sums = r.row_sums("out");
  std::vector<double> d(kRow + kTaps - 1), d2(kRow + kTaps - 1);
  for (int i = 0; i < kRow; ++i) {
    for (int tap = 0; tap < kTaps; ++tap) {
      const double factor = sums.weights[i] * double{weight(tap)};
      d[i + tap] += factor;
      d2[i + tap] += factor * factor;
    }
  }
  parallel_for(
      p.count / kRow,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const lab::WeightedSums of_row = lab::weighted_sums(p.in + row * kRow, d, d2);
          sums.sums[row] = of_row.sum;
          sums.squares[row] = of_row.squares;
        }
      },
      16);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "re-read neighbours from global → stage in shared memory",
      .technique = "shared_memory_staging",
      .knobs = {{.name = "count",
                 .cpu = 1 << 25,
                 .min = kRow,
                 .max = std::int64_t{1} << 28,
                 .multiple_of = kRow,
                 .help = "outputs of a 33-tap filter"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Staging replaces 33 global load requests per warp by one or two; L1 already "
                  "catches the re-reads, so what is left to gain is its work per request.",
              .cost = cost,
              .witness =
                  lab::Witness::counter("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                        lab::Witness::Moves::falls, 8, "global load requests")},
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.in = b.input<float>("in", count + 2 * kRadius, lab::Fill::uniform()),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch06::shared_stencil
