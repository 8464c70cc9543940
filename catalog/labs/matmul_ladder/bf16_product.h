// What the ladders of a bf16 product have in common: sizes, inputs, what they must give.
#pragma once
#include <cstdint>
#include <vector>

#include "catalog/labs/matmul_ladder/lab.h"
#include "core/os/threads.h"
#include "lab/author/linear.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::matmul_ladder {

inline lab::Cost product_cost(const lab::Knobs& knobs) {
  const auto size = static_cast<double>(knobs["size"]);
  return {.read_bytes = 2 * 2 * size * size,
          .write_bytes = 2 * size * size,
          .flops = 2 * size * size * size,
          .rate = DType::bf16,
          .unit = lab::Cost::Unit::matrix};
}

inline std::vector<lab::Knob> product_knobs() {
  return {{.name = "size",
           .cuda = 8192,
           .min = 1024,
           .max = 16384,
           .multiple_of = 1024,
           .help = "rows and columns of A, B and C"}};
}

inline lab::Metric product_rate() {
  return {.name = "tflops",
          .unit = "TFLOP/s",
          .better = lab::Metric::Better::higher,
          .from = lab::Metric::From::rate,
          .amount = [](const lab::Knobs& k) { return product_cost(k).flops / 1e12; }};
}

inline Params bind_product(lab::Binder& b) {
  const auto size = b.knob("size");
  // Whole numbers of up to eight bits: bf16 holds them, and sums of their products are exact in any
  // order while they are below 2^24, so that what is left is the rounding of the result.
  const auto values = lab::Fill::whole_bf16(-128, 129);
  return {.a = b.input<Bf16>("a", size * size, values),
          .b = b.input<Bf16>("b", size * size, values),
          .c = b.output<Bf16>("c", size * size),
          .m = static_cast<int>(size),
          .n = static_cast<int>(size),
          .k = static_cast<int>(size)};
}

inline void expect_bf16_product(const Params& p, lab::Reference& r) {
  const auto floats_of = [](const Bf16* from, std::int64_t count) {
    std::vector<float> floats(static_cast<std::size_t>(count));
    parallel_for(count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        floats[static_cast<std::size_t>(i)] = to_float(from[i]);
      }
    });
    return floats;
  };
  const std::vector<float> a = floats_of(p.a, std::int64_t{p.m} * p.k);
  const std::vector<float> b = floats_of(p.b, std::int64_t{p.n} * p.k);
  lab::expect_linear(r, "c", {.a = a.data(), .b = b.data(), .m = p.m, .n = p.n, .k = p.k},
                     {.result = DType::bf16}, 512);
}

}  // namespace gauntlet::labs::matmul_ladder
