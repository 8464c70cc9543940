#include "tests/lies/scale_pair.h"

#include <cmath>
#include <thread>
#include <vector>

#include "core/os/threads.h"

namespace gauntlet::lies {

lab::Pair<Params> scale_pair(const Pretence& pretence) {
  const lab::BackendFacts facts{
      .claim = "The optimized side doubles every element faster.",
      .cost =
          [declared = pretence.declared, level = pretence.level](const lab::Knobs& knobs) {
            const double bytes = 4.0 * declared * static_cast<double>(knobs["count"]);
            return lab::Cost{.read_bytes = bytes, .write_bytes = bytes, .level = level};
          },
      .witness = pretence.witness};
  return {
      .title = "double every element → pretend to",
      .technique = "lying",
      .knobs = {{.name = "count",
                 .cpu = pretence.cpu_count,
                 .cuda = 1 << 22,
                 .min = 64,
                 .help = "elements"}},
      .cpu = facts,
      .cuda = facts,
      .bind =
          [](lab::Binder& b) {
            const auto count = b.knob("count");
            return Params{.in = b.input<float>("in", count, lab::Fill::uniform()),
                          .out = b.output<float>("out", count),
                          .count = count};
          },
      .reference =
          [read = pretence.read, check = pretence.check](const Params& p, lab::Reference& r) {
            std::this_thread::sleep_for(check);
            const auto out = r.exact<float>("out");
            const auto used = static_cast<std::int64_t>(read * static_cast<double>(p.count));
            for (std::int64_t i = 0; i < p.count; ++i) {
              out[static_cast<std::size_t>(i)] = 2.0f * p.in[i % used];
            }
          },
  };
}

namespace {

void multiply_reference(const ProductParams& p, DType operands, lab::Reference& r) {
  const auto rows = r.stratified(p.n, 16);
  const auto values = r.rows("c", p.n, rows, {.operands = operands, .length = p.n});
  const auto norms = r.norms("c");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0, squares = 0;
      for (std::int64_t k = 0; k < p.n; ++k) {
        const double term = double{p.a[rows[i] * p.n + k]} * p.b[k * p.n + j];
        sum += term;
        squares += term * term;
      }
      const std::size_t at = i * static_cast<std::size_t>(p.n) + static_cast<std::size_t>(j);
      values[at] = sum;
      norms[at] = std::sqrt(squares);
    }
  }
  const lab::RowSums sums = r.row_sums("c");
  std::vector<double> bw(static_cast<std::size_t>(p.n)), bw2(static_cast<std::size_t>(p.n));
  for (std::int64_t k = 0; k < p.n; ++k) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      const double b = p.b[k * p.n + j], w = sums.weights[static_cast<std::size_t>(j)];
      bw[static_cast<std::size_t>(k)] += b * w;
      bw2[static_cast<std::size_t>(k)] += b * b * w * w;
    }
  }
  for (std::int64_t i = 0; i < p.n; ++i) {
    for (std::int64_t k = 0; k < p.n; ++k) {
      const double a = p.a[i * p.n + k];
      sums.sums[static_cast<std::size_t>(i)] += a * bw[static_cast<std::size_t>(k)];
      sums.squares[static_cast<std::size_t>(i)] += a * a * bw2[static_cast<std::size_t>(k)];
    }
  }
}

}  // namespace

lab::Pair<ProductParams> product_pair(DType operands) {
  const lab::BackendFacts facts{.claim = "The optimized side multiplies faster.",
                                .cost =
                                    [](const lab::Knobs& knobs) {
                                      const auto n = static_cast<double>(knobs["n"]);
                                      return lab::Cost{.read_bytes = 8 * n * n,
                                                       .write_bytes = 4 * n * n,
                                                       .flops = 2 * n * n * n,
                                                       .level = lab::Cost::Level::cache};
                                    },
                                .witness = lab::Witness::none("a planted lie")};
  return {
      .title = "multiply → pretend to",
      .technique = "lying",
      .knobs = {{.name = "n", .cpu = 192, .cuda = 512, .min = 64, .help = "rows and columns"}},
      .cpu = facts,
      .cuda = facts,
      .bind =
          [](lab::Binder& b) {
            const auto n = b.knob("n");
            return ProductParams{.a = b.input<float>("a", n * n, lab::Fill::uniform()),
                                 .b = b.input<float>("b", n * n, lab::Fill::uniform()),
                                 .c = b.output<float>("c", n * n),
                                 .n = n};
          },
      .reference = [operands](const ProductParams& p,
                              lab::Reference& r) { multiply_reference(p, operands, r); },
  };
}

}  // namespace gauntlet::lies
