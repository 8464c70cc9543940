#include "catalog/labs/matmul_ladder_fp8/lab.h"

#include <cstdint>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/linear.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::matmul_ladder_fp8 {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto size = static_cast<double>(knobs["size"]);
  return {.read_bytes = 2 * size * size,
          .write_bytes = 2 * size * size,
          .flops = 2 * size * size * size,
          .rate = DType::f8e4m3,
          .unit = lab::Cost::Unit::matrix};
}

lab::BackendFacts on_cuda() {
  using lab::Witness;
  return {.claim =
              "Operands of eight bits are multiplied twice as fast as those of sixteen; the scales "
              "of their blocks cost that back unless their sums are added up while the tensor "
              "cores are at the next products.",
          .cost = cost,
          .witness = Witness::none("each rung has its own"),
          .yardsticks = {{.name = "cublaslt", .needs = {"cublas"}}},
          .rungs = {
              {.name = "wgmma",
               .claim = "Tensor cores read shared memory themselves, 64 x 128 products at a time, "
                        "and tensor copies fill it.",
               .witness = Witness::counter("smsp__inst_executed.sum", Witness::Moves::falls, 1.3,
                                           "instructions that warps executed")},
              {.name = "overlapped",
               .claim = "The next products run while the last ones are scaled and added, which a "
                        "second set of registers makes room for.",
               .witness = Witness::counter(
                   "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                   Witness::Moves::rises, 1.02, "share of the cycles in which tensor cores work")},
              {.name = "persistent",
               .claim = "Tiles of 128 x 256 fetch a quarter less than two of 128 x 128, a "
                        "block's rows of A pass through registers once for all columns, and the "
                        "next tile is fetched while one is stored.",
               .witness = Witness::counter("sm__ctas_launched.sum", Witness::Moves::falls, 2,
                                           "blocks launched")}}};
}

/// A matrix with every element times its scale. Whole numbers of four bits times scales of eight
/// are floats.
std::vector<float> scaled(const F8e4m3* from, std::int64_t rows, std::int64_t columns,
                          auto scale_of) {
  std::vector<float> floats(static_cast<std::size_t>(rows * columns));
  parallel_for(
      rows,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          for (std::int64_t block = 0; block < columns / kScaled; ++block) {
            const float scale = scale_of(row, block);
            for (std::int64_t i = row * columns + block * kScaled;
                 i < row * columns + (block + 1) * kScaled; ++i) {
              floats[static_cast<std::size_t>(i)] = to_float(from[i]) * scale;
            }
          }
        }
      },
      16);
  return floats;
}

}  // namespace

lab::Lab<Params> lab() {
  return {
      .title = "mma.sync → overlapped scaling on persistent blocks, e4m3 with block scales",
      .technique = "matmul_steps",
      .knobs = {{.name = "size",
                 .cuda = 8192,
                 .min = 1024,
                 .max = 16384,
                 .multiple_of = 1024,
                 .help = "rows and columns of A, B and C"}},
      .cuda = on_cuda(),
      .metrics = {{.name = "tflops",
                   .unit = "TFLOP/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = [](const lab::Knobs& k) { return cost(k).flops / 1e12; }}},
      .bind =
          [](lab::Binder& b) {
            const auto size = b.knob("size"), blocks = size / kScaled;
            // Tensor cores keep 14 bits of a sum of e4m3 products, and whole numbers up to 8 need
            // no more between two scalings. So only the float32 sums of scaled parts are rounded.
            const auto values = lab::Fill::whole_f8e4m3(-8, 9);
            const auto scales = lab::Fill::whole_floats(64, 192);
            return Params{.a = b.input<F8e4m3>("a", size * size, values),
                          .b = b.input<F8e4m3>("b", size * size, values),
                          .a_scales = b.input<float>("a_scales", blocks * size, scales),
                          .b_scales = b.input<float>("b_scales", blocks * blocks, scales),
                          .c = b.output<Bf16>("c", size * size),
                          .m = static_cast<int>(size),
                          .n = static_cast<int>(size),
                          .k = static_cast<int>(size)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::vector<float> a =
                scaled(p.a, p.m, p.k, [&](std::int64_t row, std::int64_t block) {
                  return p.a_scales[block * p.m + row];
                });
            const std::vector<float> b =
                scaled(p.b, p.n, p.k, [&](std::int64_t row, std::int64_t block) {
                  return p.b_scales[row / kScaled * (p.k / kScaled) + block];
                });
            lab::expect_linear(r, "c", {.a = a.data(), .b = b.data(), .m = p.m, .n = p.n, .k = p.k},
                               {.result = DType::bf16}, 512);
          },
  };
}

}  // namespace gauntlet::labs::matmul_ladder_fp8
