#include "catalog/labs/attention_ladder/lab.h"

#include <algorithm>

#include "catalog/labs/attention_ladder/expected_attention.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::attention_ladder {
namespace {

/// Two products of every query with every key that it sees.
double flops(const lab::Knobs& knobs) {
  const auto sequence = static_cast<double>(knobs["sequence"]);
  return 4 * static_cast<double>(knobs["heads"] * knobs["head_dim"]) * sequence * (sequence + 1) /
         2;
}

lab::Cost cost(const lab::Knobs& knobs) {
  const auto bytes =
      2 * static_cast<double>(knobs["heads"] * knobs["sequence"] * knobs["head_dim"]);
  return {.read_bytes = 3 * bytes,
          .write_bytes = bytes,
          .flops = flops(knobs),
          .rate = DType::bf16,
          .unit = lab::Cost::Unit::matrix,
          .level = lab::Cost::Level::cache};
}

lab::BackendFacts on_cuda() {
  using lab::Witness;
  return {
      .claim =
          "Each step takes away what kept the tensor cores waiting in the one before: scores "
          "in memory, operands in registers, exponentials.",
      .cost = cost,
      .witness = Witness::none("each rung has its own"),
      .needs = {"cudnn"},
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
      .knobs = {{.name = "heads", .cuda = 32, .max = 4096, .help = "of all sequences of a batch"},
                {.name = "sequence",
                 .cuda = 8192,
                 .min = 128,
                 .max = 1 << 15,
                 .multiple_of = 128,
                 .help = "queries, keys and values of each head; a query sees no later key"},
                {.name = "head_dim",
                 .cuda = 128,
                 .min = 64,
                 .max = 128,
                 .multiple_of = 64,
                 .help = "64 or 128"}},
      .cuda = on_cuda(),
      .metrics = {{.name = "attention",
                   .unit = "FLOP/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount = flops}},
      .bind =
          [](lab::Binder& b) {
            const auto heads = b.knob("heads"), sequence = b.knob("sequence"),
                       head_dim = b.knob("head_dim");
            const std::int64_t words = heads * sequence * head_dim;
            const std::int64_t scores = std::min(heads, kScoredHeads) * sequence * sequence;
            // Whole numbers, so that scores are exact; of a size that makes some weights matter
            // and many still count.
            return Params{.q = b.input<Bf16>("q", words, lab::Fill::whole_bf16(-2, 3)),
                          .k = b.input<Bf16>(
                              "k", words, lab::Fill::whole_bf16_rows(-2, 3, head_dim, kKeyKinds)),
                          .v = b.input<Bf16>("v", words, lab::Fill::whole_bf16(-8, 9)),
                          .scores = b.scratch<float>("scores", scores),
                          .weights = b.scratch<Bf16>("weights", scores),
                          .out = b.output<Bf16>("out", words),
                          .heads = static_cast<int>(heads),
                          .sequence = static_cast<int>(sequence),
                          .head_dim = static_cast<int>(head_dim)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            expect_attention(r, "out", p, {.operands = DType::bf16, .result = DType::bf16}, 1024);
          },
  };
}

}  // namespace gauntlet::labs::attention_ladder
