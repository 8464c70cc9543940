#include "catalog/labs/attention_ladder_fp8/lab.h"

#include "catalog/labs/attention_ladder/attention_lab.h"
#include "catalog/labs/attention_ladder/expected_attention.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::attention_ladder_fp8 {

lab::Lab<Params> lab() {
  return {
      .title = "products in 16 bits → in 8, with what it takes to get there",
      .technique = "attention_steps",
      .knobs = attention_ladder::attention_knobs(),
      .cuda =
          lab::BackendFacts{
              .claim =
                  "Products in 8 bits take half of the cycles, and the softmax that hid behind "
                  "them half hides still. Rounding queries, keys and values, which come in 16 "
                  "bits, and turning values round, because 8-bit operands are K-major, is "
                  "inside of the time: narrow_us of it.",
              .cost =
                  [](const lab::Knobs& knobs) {
                    return attention_ladder::attention_cost(knobs, DType::f8e4m3);
                  },
              .witness = lab::Witness::none("each rung has its own"),
              .rungs = {{.name = "fp8",
                         .claim = "Tensor cores need half the cycles for products of e4m3.",
                         .witness = lab::Witness::counter("sm__pipe_tensor_cycles_active.sum",
                                                          lab::Witness::Moves::falls, 1.5,
                                                          "cycles in which tensor cores work")}}},
      .metrics = {attention_ladder::attention_rate(),
                  {.name = "narrow_us",
                   .unit = "us, of rounding and turning round",
                   .from = lab::Metric::From::outcome}},
      .bind =
          [](lab::Binder& b) {
            const attention_ladder::Params in_bf16 = attention_ladder::bind_attention(b);
            const std::int64_t words =
                std::int64_t{in_bf16.heads} * in_bf16.sequence * in_bf16.head_dim;
            return Params{.in_bf16 = in_bf16,
                          .q = b.scratch<F8e4m3>("q8", words),
                          .k = b.scratch<F8e4m3>("k8", words),
                          .v = b.scratch<F8e4m3>("v8", words)};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            attention_ladder::expect_attention(
                r, "out", p.in_bf16, {.operands = DType::f8e4m3, .result = DType::bf16}, 1024);
          },
  };
}

}  // namespace gauntlet::labs::attention_ladder_fp8
