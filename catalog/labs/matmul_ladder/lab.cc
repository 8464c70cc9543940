#include "catalog/labs/matmul_ladder/lab.h"

#include <vector>

#include "core/os/threads.h"
#include "lab/author/linear.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::matmul_ladder {
namespace {

lab::Cost cost(const lab::Knobs& knobs) {
  const auto size = static_cast<double>(knobs["size"]);
  return {.read_bytes = 2 * 2 * size * size,
          .write_bytes = 2 * size * size,
          .flops = 2 * size * size * size,
          .rate = DType::bf16,
          .unit = lab::Cost::Unit::matrix};
}

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
      .cost = cost,
      .witness = Witness::none("each rung has its own"),
      .needs = {},
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

std::vector<float> floats_of(const Bf16* from, std::int64_t count) {
  std::vector<float> floats(static_cast<std::size_t>(count));
  parallel_for(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      floats[static_cast<std::size_t>(i)] = to_float(from[i]);
    }
  });
  return floats;
}

}  // namespace

lab::Lab<Params> lab() {
  return {
      .title = "three loops → persistent blocks on tensor cores, bf16",
      .technique = "matmul_steps",
      .knobs = {{.name = "size",
                 .cuda = 8192,
                 .min = 512,
                 .max = 16384,
                 .multiple_of = 512,
                 .help = "rows and columns of A, B and C"}},
      .cuda = on_cuda(),
      .metrics = {{.name = "tflops",
                   .unit = "TFLOP/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = [](const lab::Knobs& k) { return cost(k).flops / 1e12; }}},
      .bind =
          [](lab::Binder& b) {
            const auto size = b.knob("size");
            // Whole numbers of up to eight bits: bf16 holds them, and sums of their products are
            // exact in any order while they are below 2^24, so that what is left is the rounding
            // of the result.
            const auto values = lab::Fill::whole_bf16(-128, 129);
            return Params{.a = b.input<Bf16>("a", size * size, values),
                          .b = b.input<Bf16>("b", size * size, values),
                          .c = b.output<Bf16>("c", size * size),
                          .m = static_cast<int>(size),
                          .n = static_cast<int>(size),
                          .k = static_cast<int>(size)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            const std::vector<float> a = floats_of(p.a, std::int64_t{p.m} * p.k);
            const std::vector<float> b = floats_of(p.b, std::int64_t{p.n} * p.k);
            lab::expect_linear(r, "c",
                               {.a = a.data(), .b = b.data(), .m = p.m, .n = p.n, .k = p.k},
                               {.result = DType::bf16}, 512);
          },
  };
}

}  // namespace gauntlet::labs::matmul_ladder
