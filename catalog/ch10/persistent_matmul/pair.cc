#include "catalog/ch10/persistent_matmul/pair.h"

#include "lab/author/linear.h"
#include "lab/author/pair.h"

namespace gauntlet::ch10::persistent_matmul {
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
      .title = "one block per tile → persistent blocks, tile scheduler",
      .technique = "persistent_blocks",
      .knobs = {size("m", 8192, "rows of A and C"), size("n", 8192, "columns of C, rows of B"),
                size("k", 1024, "columns of A and B")},
      .cuda =
          lab::BackendFacts{
              .claim = "A new block starts with empty stages and ends with its stores; a block "
                       "that stays loads its next tile while it stores this one, so the tensor "
                       "cores wait once per SM instead of once per tile.",
              .cost = cost,
              .witness = lab::Witness::counter("sm__ctas_launched.sum", lab::Witness::Moves::falls,
                                               2, "blocks launched"),
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

}  // namespace gauntlet::ch10::persistent_matmul
