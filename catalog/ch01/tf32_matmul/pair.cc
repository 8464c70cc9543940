#include "catalog/ch01/tf32_matmul/pair.h"

#include "lab/author/pair.h"
#include "lab/author/product.h"

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
  // The fp32 side is far inside this bound; the tf32 side needs it. The metric shows both errors.
  lab::expect_product(r, "c", {.a = p.a, .b = p.b, .m = p.m, .n = p.n, .k = p.k},
                      {.operands = DType::tf32}, 512);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "fp32 → tf32 tensor cores (same code, one switch)",
      .technique = "tf32_math",
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
                                               "instructions of the FMA units"),
              .needs = {"sm_80", "cublas"}},
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
