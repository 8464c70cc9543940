#include "catalog/labs/matmul_ladder/lab.h"

#include "catalog/labs/matmul_ladder/bf16_product.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::matmul_ladder {
namespace {

lab::BackendFacts on_cuda() {
  using lab::Witness;
  const auto instructions = [](double factor) {
    return Witness::counter("smsp__inst_executed.sum", Witness::Moves::falls, factor,
                            "instructions that warps executed");
  };
  const auto tensor_cores = [](double factor) {
    return Witness::counter("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                            Witness::Moves::rises, factor,
                            "share of the cycles in which tensor cores work");
  };
  return {
      .claim = "Each step takes away what kept the tensor cores waiting in the one before: fetches, "
               "registers, issue slots, L2, the ends of tiles.",
      .cost = product_cost,
      .witness = Witness::none("each rung has its own"),
      .needs = {"cublas"},
      .rungs = {
          {.name = "tiled",
           .claim = "A tile of 128 x 128 sums fetches each element of its rows and columns once "
                    "instead of 16 times, and a thread uses each for eight sums.",
           .witness = Witness::counter("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                       Witness::Moves::falls, 8, "global load requests")},
          {.name = "mma",
           .claim = "One instruction of a warp is 2,048 multiply-adds instead of 32, and bf16 needs "
                    "no conversion.",
           .witness = instructions(8)},
          {.name = "cp_async",
           .claim = "Copies into two more stages run while one is multiplied, beyond what a second "
                    "block on the SM hides already.",
           .witness = tensor_cores(1.1)},
          {.name = "tma",
           .claim = "Two instructions of one thread replace 2,048 copies of 256 threads, with their "
                    "addresses: issue slots go to products.",
           .witness = instructions(1.1)},
          {.name = "wgmma",
           .claim = "Tensor cores read shared memory themselves, 64 x 256 sums at a time, so that "
                    "no fragment passes through registers and a block's tile can be twice as large; "
                    "the loading warp only follows barriers.",
           .witness = instructions(3)}}};
}

}  // namespace

lab::Lab<Params> lab() {
  return {
      .title = "three loops → persistent blocks on tensor cores, bf16",
      .technique = "matmul_steps",
      .knobs = product_knobs(),
      .cuda = on_cuda(),
      .metrics = {product_rate()},
      .bind = bind_product,
      .reference = expect_bf16_product,
  };
}

}  // namespace gauntlet::labs::matmul_ladder
