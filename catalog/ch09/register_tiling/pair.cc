#include "catalog/ch09/register_tiling/pair.h"

#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch09::register_tiling {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto m = static_cast<double>(knobs["m"]);
  const auto n = static_cast<double>(knobs["n"]);
  const auto k = static_cast<double>(knobs["k"]);
  return {.read_bytes = 4 * (m * k + k * n),
          .write_bytes = 4 * m * n,
          .flops = 2 * m * n * k,
          .level = lab::Cost::Level::cache};
}

}  // namespace

lab::Pair<Params> pair() {
  const auto size = [](const char* name, const char* help) {
    return lab::Knob{
        .name = name, .cpu = 512, .cuda = 2048, .max = 16384, .multiple_of = 128, .help = help};
  };
  return {
      .title = "shared tiles → shared + register tiles (CPU: cache → cache + register tiles)",
      .technique = "register_tiling",
      .knobs = {size("m", "rows of A and C"), size("n", "columns of B and C"),
                size("k", "columns of A, rows of B")},
      .cpu =
          lab::BackendFacts{
              .claim = "A sum that lies in cache costs a load and a store for each product that is "
                       "added to it; a 4 x 16 tile of sums in registers costs none, and each "
                       "vector of B is loaded once for four rows.",
              .cost = cost,
              .witness = lab::Witness::counter("L1-dcache-loads", lab::Witness::Moves::falls, 1.8,
                                               "loads that reached the first-level cache")},
      .cuda =
          lab::BackendFacts{.claim = "One sum per thread costs two loads from shared memory for "
                                     "each multiply-add; 8 x 8 sums per thread cost four of "
                                     "16 bytes for 64.",
                            .cost = cost,
                            .witness = lab::Witness::counter(
                                "smsp__inst_executed_op_shared_ld.sum", lab::Witness::Moves::falls,
                                8, "load instructions from shared memory")},
      .bind =
          [](lab::Binder& b) {
            const auto m = b.knob("m"), n = b.knob("n"), k = b.knob("k");
            return Params{.a = b.input<float>("a", m * k, lab::Fill::uniform()),
                          .b = b.input<float>("b", k * n, lab::Fill::uniform()),
                          .c = b.output<float>("c", m * n),
                          .m = static_cast<int>(m),
                          .n = static_cast<int>(n),
                          .k = static_cast<int>(k)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            lab::expect_product(r, "c", {.a = p.a, .b = p.b, .m = p.m, .n = p.n, .k = p.k}, {},
                                128);
          },
  };
}

}  // namespace gauntlet::ch09::register_tiling
