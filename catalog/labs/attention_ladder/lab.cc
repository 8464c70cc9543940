#include "catalog/labs/attention_ladder/lab.h"

#include <algorithm>

#include "catalog/labs/attention_ladder/attention_lab.h"
#include "catalog/labs/attention_ladder/expected_attention.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::attention_ladder {
namespace {

lab::BackendFacts on_cuda() {
  using lab::Witness;
  return {
      .claim =
          "Each step takes away what kept the tensor cores waiting in the one before: scores "
          "in memory, operands in registers, exponentials.",
      .cost = [](const lab::Knobs& knobs) { return attention_cost(knobs, DType::bf16); },
      .witness = Witness::none("each rung has its own"),
      .yardsticks = {{.name = "cudnn", .needs = {"cudnn"}}},
      .rungs = {
          {.name = "flash_mma",
           .claim = "A running maximum lets 64 keys' scores be used while they are in registers; "
                    "they never go to memory and come back.",
           .witness = Witness::counter("dram__bytes.sum", Witness::Moves::falls, 4,
                                       "bytes between memory and L2, either way")},
          {.name = "wgmma",
           .claim =
               "Tensor cores read keys and values where the tensor engine put them, 64 queries "
               "times a whole block with one instruction: warps no longer load operands.",
           .witness = Witness::counter("smsp__inst_executed.sum", Witness::Moves::falls, 1.3,
                                       "instructions that warps executed")},
          {.name = "ping_pong",
           .claim = "While the exponentials of one block are computed, tensor cores have the next "
                    "block's products and another warpgroup's.",
           .witness = Witness::counter(
               "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
               Witness::Moves::rises, 1.02, "share of the cycles in which tensor cores work")}}};
}

}  // namespace

lab::Lab<Params> lab() {
  return {
      .title = "scores in memory → warpgroups that take turns, bf16",
      .technique = "attention_steps",
      .knobs = attention_knobs(),
      .cuda = on_cuda(),
      .metrics = {attention_rate()},
      .bind =
          [](lab::Binder& b) {
            Params p = bind_attention(b);
            const std::int64_t scores =
                std::min<std::int64_t>(p.heads, kScoredHeads) * p.sequence * p.sequence;
            p.scores = b.scratch<float>("scores", scores);
            p.weights = b.scratch<Bf16>("weights", scores);
            return p;
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            expect_attention(r, "out", p, {.operands = DType::bf16, .result = DType::bf16}, 1024);
          },
  };
}

}  // namespace gauntlet::labs::attention_ladder
