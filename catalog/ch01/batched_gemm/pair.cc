#include "catalog/ch01/batched_gemm/pair.h"

#include <cmath>

#include "core/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch01::batched_gemm {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto batch = static_cast<double>(knobs["batch"]);
  const auto size = static_cast<double>(knobs["size"]);
  return {.read_bytes = 2 * 4 * batch * size * size,
          .write_bytes = 4 * batch * size * size,
          .flops = 2 * batch * size * size * size};
}

void reference(const Params& p, lab::Reference& r) {
  const auto rows = r.stratified(p.batch * p.size, 16);
  const auto values = r.rows("c", p.size, rows, {.length = p.size});
  const auto magnitudes = r.magnitudes("c");
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t product = rows[i] / p.size;
          const float* b = p.b + product * p.size * p.size;
          for (std::int64_t column = 0; column < p.size; ++column) {
            double sum = 0, magnitude = 0;
            for (std::int64_t k = 0; k < p.size; ++k) {
              const double term = double{p.a[rows[i] * p.size + k]} * b[k * p.size + column];
              sum += term;
              magnitude += std::abs(term);
            }
            values[i * p.size + column] = sum;
            magnitudes[i * p.size + column] = magnitude;
          }
        }
      },
      16);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "many small products one by one → one strided-batched call",
      .technique = "batched_calls",
      .needs = {"cublas"},
      .knobs = {{.name = "batch", .cpu = 1024, .max = 1 << 20, .help = "independent products"},
                {.name = "size",
                 .cpu = 32,
                 .cuda = 128,
                 .max = 4096,
                 .help = "rows and columns of each matrix"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "Forking the pool once for the whole batch pays for one fork and join instead "
                  "of one per product.",
              .cost = cost,
              .witness = lab::Witness::fact("forks", lab::Witness::Moves::falls, 8,
                                            "forks of the thread pool per batch")},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "One small product occupies a few SMs for a few microseconds; one call for the "
                  "batch fills the GPU and pays for one launch.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", lab::Witness::Moves::rises,
                  3, "share of the time that an SM has work")},
      .bind =
          [](lab::Binder& b) {
            const auto batch = b.knob("batch"), size = b.knob("size");
            const auto count = batch * size * size;
            return Params{.a = b.input<float>("a", count, lab::Fill::uniform()),
                          .b = b.input<float>("b", count, lab::Fill::uniform()),
                          .c = b.output<float>("c", count),
                          .batch = batch,
                          .size = size};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch01::batched_gemm
