#include "catalog/ch09/epilogue_fusion/pair.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/pair.h"

namespace gauntlet::ch09::epilogue_fusion {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto m = static_cast<double>(knobs["m"]);
  const auto n = static_cast<double>(knobs["n"]);
  const auto k = static_cast<double>(knobs["k"]);
  return {.read_bytes = 4 * (m * k + n * k + n),
          .write_bytes = 4 * m * n,
          .flops = 2 * m * n * k,
          .rate = DType::tf32,
          .unit = lab::Cost::Unit::matrix,
          .level = lab::Cost::Level::cache};
}

/// Every element, exactly: rows of y as sums of rows of the turned weights.
void reference(const Params& p, lab::Reference& r) {
  std::vector<float> turned(static_cast<std::size_t>(p.k * p.n));
  for (std::int64_t column = 0; column < p.n; ++column) {
    for (std::int64_t i = 0; i < p.k; ++i) turned[i * p.n + column] = p.w[column * p.k + i];
  }
  const std::span<float> y = r.exact<float>("y");
  parallel_for(
      p.m,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          float* __restrict__ to = y.data() + row * p.n;
          std::copy_n(p.bias, p.n, to);
          for (std::int64_t i = 0; i < p.k; ++i) {
            const float factor = p.x[row * p.k + i];
            const float* __restrict__ w = turned.data() + i * p.n;
            for (std::int64_t column = 0; column < p.n; ++column) to[column] += factor * w[column];
          }
          for (std::int64_t column = 0; column < p.n; ++column) {
            to[column] = std::max(to[column], 0.0f);
          }
        }
      },
      4);
}

}  // namespace

lab::Pair<Params> pair() {
  return {
      .title = "GEMM then bias/activation → fused epilogue (cuBLASLt)",
      .technique = "epilogue_fusion",
      .knobs = {{.name = "m", .cuda = 4096, .max = 1 << 16, .help = "rows of x and y"},
                {.name = "n",
                 .cuda = 4096,
                 .min = 4,
                 .max = 1 << 16,
                 .multiple_of = 4,
                 .help = "columns of y"},
                {.name = "k",
                 .cuda = 128,
                 .min = 4,
                 .max = 512,
                 .multiple_of = 4,
                 .help = "columns of x; the longer the sums, the less their epilogue matters"}},
      .cuda = lab::BackendFacts{.claim = "A second kernel reads and writes all of a short "
                                         "product's result once more; as the product's epilogue "
                                         "bias and rectification cost next to nothing.",
                                .cost = cost,
                                .witness = lab::Witness::counter("lts__t_bytes.sum",
                                                                 lab::Witness::Moves::falls, 1.4,
                                                                 "bytes that passed L2"),
                                .needs = {"sm_80", "cublas"}},
      .metrics = {{.name = lab::kSetupUs,
                   .unit = "us, before the clock starts",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const auto m = b.knob("m"), n = b.knob("n"), k = b.knob("k");
            // Whole numbers of nine bits, whose sums of at most 512 products are exact in any
            // order; a bias of their size, so that about half of the results are cut to zero.
            const auto values = lab::Fill::whole_floats(-384, 384);
            return Params{
                .x = b.input<float>("x", m * k, values),
                .w = b.input<float>("w", n * k, values),
                .bias = b.input<float>("bias", n, lab::Fill::whole_floats(-(1 << 20), 1 << 20)),
                .y = b.output<float>("y", m * n),
                .m = m,
                .n = n,
                .k = k};
          },
      .reference = reference,
  };
}

}  // namespace gauntlet::ch09::epilogue_fusion
