#include "catalog/ch09/wgmma_matmul/pair.h"

#include "lab/author/linear.h"
#include "lab/author/pair.h"

namespace gauntlet::ch09::wgmma_matmul {
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

}  // namespace

lab::Pair<Params> pair() {
  const auto size = [](const char* name, std::int64_t of, const char* help) {
    return lab::Knob{
        .name = name, .cuda = of, .min = 256, .max = 16384, .multiple_of = 256, .help = help};
  };
  return {
      .title = "mma.sync → wgmma",
      .technique = "warpgroup_mma",
      .knobs = {size("m", 4096, "rows of A and C"), size("n", 4096, "columns of C, rows of B"),
                size("k", 4096, "columns of A and B")},
      .cuda =
          lab::BackendFacts{
              .claim = "wgmma reads both operands from shared memory by a descriptor: no fragments "
                       "pass through registers, and four warps share one instruction of 64 x 128.",
              .cost = cost,
              .witness = lab::Witness::counter(
                  "smsp__inst_executed_op_ldsm.sum", lab::Witness::Moves::falls, 8,
                  "instructions that loaded fragments from shared memory into registers"),
              .needs = {}},
      .bind =
          [](lab::Binder& b) {
            const auto m = b.knob("m"), n = b.knob("n"), k = b.knob("k");
            // Whole numbers of nine bits: tf32 holds them and eight do not, and sums of their
            // products are exact in any order while they are below 2^24.
            const auto values = lab::Fill::whole_floats(-384, 384);
            return Params{.a = b.input<float>("a", m * k, values),
                          .b = b.input<float>("b", n * k, values),
                          .c = b.output<float>("c", m * n),
                          .m = static_cast<int>(m),
                          .n = static_cast<int>(n),
                          .k = static_cast<int>(k)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            lab::expect_linear(r, "c", {.a = p.a, .b = p.b, .m = p.m, .n = p.n, .k = p.k}, {}, 512);
          },
  };
}

}  // namespace gauntlet::ch09::wgmma_matmul
