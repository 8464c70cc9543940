#include "catalog/ch07/tiled_matmul/pair.h"

#include "lab/author/pair.h"
#include "lab/author/product.h"

namespace gauntlet::ch07::tiled_matmul {
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
  return {
      .title = "operands from global → shared-memory tiles (CPU: cache tiles)",
      .technique = "shared_memory_tiling",
      .knobs = {{.name = "m",
                 .cpu = 32,
                 .cuda = 1024,
                 .max = 16384,
                 .multiple_of = 32,
                 .help = "rows of A and C"},
                {.name = "n",
                 .cpu = 2048,
                 .cuda = 1024,
                 .max = 16384,
                 .multiple_of = 32,
                 .help = "columns of B and C"},
                {.name = "k",
                 .cpu = 2048,
                 .cuda = 1024,
                 .max = 16384,
                 .multiple_of = 32,
                 .help = "columns of A, rows of B"}},
      .cpu = lab::BackendFacts{.claim = "A tile of B that stays in L1 for all rows of A is fetched "
                                        "once instead of once per row.",
                               .cost = cost,
                               .witness = lab::Witness::counter("L1-dcache-load-misses",
                                                                lab::Witness::Moves::falls, 2,
                                                                "loads that missed L1")},
      .cuda =
          lab::BackendFacts{
              .claim = "Each word of a 32 x 32 tile is fetched once per block instead of 32 times; "
                       "L1 already served most of those, so what is saved is its requests, not "
                       "DRAM traffic.",
              .cost = cost,
              .witness =
                  lab::Witness::counter("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                        lab::Witness::Moves::falls, 16, "global load requests")},
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

}  // namespace gauntlet::ch07::tiled_matmul
