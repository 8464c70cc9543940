#include "catalog/ch01/tf32_matmul/pair.h"

#include <cmath>

#include "core/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch01::tf32_matmul {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto m = static_cast<double>(knobs["m"]);
  const auto n = static_cast<double>(knobs["n"]);
  const auto k = static_cast<double>(knobs["k"]);
  return {.read_bytes = 4 * (m * k + k * n),
          .write_bytes = 4 * m * n,
          .flops = 2 * m * n * k,
          .rate = DType::tf32,
          .unit = lab::Cost::Unit::matrix};
}

void reference(const Params& p, lab::Reference& r) {
  const auto rows = r.stratified(p.m, 128);
  // The fp32 side is far inside this bound; the tf32 side needs it. The metric shows both errors.
  const auto values = r.rows("c", p.n, rows, {.operands = DType::tf32, .length = p.k});
  const auto magnitudes = r.magnitudes("c");
  parallel_for(
      static_cast<std::int64_t>(rows.size()),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          double* value = values.data() + i * p.n;
          double* magnitude = magnitudes.data() + i * p.n;
          for (std::int64_t column = 0; column < p.n; ++column)
            value[column] = magnitude[column] = 0;
          for (std::int64_t k = 0; k < p.k; ++k) {
            const double factor = p.a[rows[i] * p.k + k];
            for (std::int64_t column = 0; column < p.n; ++column) {
              const double term = factor * p.b[k * p.n + column];
              value[column] += term;
              magnitude[column] += std::abs(term);
            }
          }
        }
      },
      2);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "fp32 → tf32 tensor cores (same code, one switch)",
      .technique = "tf32_math",
      .needs = {"sm_80", "cublas"},
      .knobs = {{.name = "m", .cpu = 3072, .max = 16384, .help = "rows of A and C"},
                {.name = "n", .cpu = 3072, .max = 16384, .help = "columns of B and C"},
                {.name = "k", .cpu = 3072, .max = 16384, .help = "columns of A, rows of B"}},
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Tensor cores multiply fp32 operands cut to 10 mantissa bits several times "
                  "faster than the FMA units multiply them whole; the error grows with the cut.",
              .cost = cost,
              .witness = lab::Witness::counter("sm__inst_executed_pipe_fma.sum",
                                               lab::Witness::Moves::falls, 8,
                                               "instructions of the FMA units")},
      .metrics = {{.name = "error", .unit = "relative", .from = lab::Metric::From::error}},
      .bind =
          [](lab::Binder& b) {
            const auto m = b.knob("m"), n = b.knob("n"), k = b.knob("k");
            return Params{.a = b.input<float>("a", m * k, lab::Fill::uniform()),
                          .b = b.input<float>("b", k * n, lab::Fill::uniform()),
                          .c = b.output<float>("c", m * n),
                          .m = m,
                          .n = n,
                          .k = k};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch01::tf32_matmul
