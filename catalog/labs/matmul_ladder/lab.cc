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
      .claim =
          "Each step takes away what kept the tensor cores waiting in the one before: fetches, "
          "registers, issue slots, L2, the ends of tiles.",
      .cost = product_cost,
      .witness = Witness::none("each rung has its own"),
      .yardsticks = {{.name = "cublas", .needs = {"cublas"}}},
      .rungs = {
          {.name = "tiled",
           .claim = "A tile of 128 x 128 sums fetches each element of its rows and columns once "
                    "instead of 16 times, and a thread uses each for eight sums.",
           .witness = Witness::counter("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                                       Witness::Moves::falls, 8, "global load requests")},
          {.name = "mma",
           .claim =
               "One instruction of a warp is 2,048 multiply-adds instead of 32, and bf16 needs "
               "no conversion.",
           .witness = instructions(8)},
          {.name = "cp_async",
           .claim = "Copies into two more stages run while one is multiplied, beyond what a second "
                    "block on the SM hides already.",
           .witness = tensor_cores(1.1)},
          {.name = "tma",
           .claim =
               "Two instructions of one thread replace 2,048 copies of 256 threads, with their "
               "addresses: issue slots go to products.",
           .witness = instructions(1.1)},
          {.name = "wgmma",
           .claim =
               "Tensor cores read shared memory themselves, 64 x 256 sums at a time, so that "
               "no fragment passes through registers and a block's tile can be twice as large; "
               "the loading warp only follows barriers.",
           .witness = instructions(3)},
          {.name = "pingpong",
           .claim = "In step, both warpgroups store while the tensor cores wait; in turns, one "
                    "stores while the other multiplies. Each then holds a tile of its own, 128 x "
                    "128, for which a third more is fetched: with sums as long as these there is "
                    "little to hide.",
           .witness = tensor_cores(1.02)},
          {.name = "multicast",
           .claim = "Two blocks with the same columns need the same tiles of B; each asks for half "
                    "of them and has it delivered to both, so L2 is read for 24 KiB per tile and "
                    "stage instead of 32.",
           .witness = Witness::counter("lts__t_sectors_op_read.sum", Witness::Moves::falls, 1.2,
                                       "sectors read from L2")},
          {.name = "persistent",
           .claim = "Blocks that stay load their next tile while they store this one; both "
                    "warpgroups are back on one tile of 128 x 256, and tiles that run at the same "
                    "time are neighbours both ways.",
           .witness = Witness::counter("sm__ctas_launched.sum", Witness::Moves::falls, 2,
                                       "blocks launched")},
          {.name = "stream_k",
           .claim = "The tiles of the last round and a half are shared out by steps of their sums, "
                    "so that no SM waits for others at the end; where a tile is cut, two blocks "
                    "pass its sums through L2.",
           .witness = tensor_cores(1.005)}}};
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
