#include "catalog/labs/matmul_ladder_blackwell/lab.h"

#include "catalog/labs/matmul_ladder/bf16_product.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::matmul_ladder_blackwell {
namespace {

lab::BackendFacts on_cuda() {
  using lab::Witness;
  return {.claim =
              "Sums in tensor memory leave registers and warps out of the products, and two SMs "
              "that multiply together fetch less than two that do not.",
          .cost = matmul_ladder::product_cost,
          .witness = Witness::none("each rung has its own"),
          .yardsticks = {{.name = "cublas", .needs = {"cublas"}}},
          .rungs = {
              {.name = "tcgen05",
               .claim = "One thread starts products of 128 x 256 x 16 whose operands and sums no "
                        "warp ever holds.",
               .witness = Witness::counter("smsp__inst_executed.sum", Witness::Moves::falls, 10,
                                           "instructions that warps executed")},
              {.name = "paired",
               .claim = "A pair of SMs shares its columns of B: each loads half of those that both "
                        "multiply with, 32 KiB per SM and stage instead of 48.",
               .witness = Witness::counter("lts__t_sectors_op_read.sum", Witness::Moves::falls, 1.2,
                                           "sectors read from L2")}}};
}

}  // namespace

lab::Lab<Params> lab() {
  return {
      .title = "mma.sync → sums in tensor memory → two SMs together, bf16",
      .technique = "matmul_steps",
      .knobs = matmul_ladder::product_knobs(),
      .cuda = on_cuda(),
      .metrics = {matmul_ladder::product_rate()},
      .bind = matmul_ladder::bind_product,
      .reference = matmul_ladder::expect_bf16_product,
  };
}

}  // namespace gauntlet::labs::matmul_ladder_blackwell
