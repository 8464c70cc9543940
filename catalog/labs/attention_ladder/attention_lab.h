// What the labs on attention have in common: sizes, cost, buffers.
#pragma once
#include <vector>

#include "catalog/labs/attention_ladder/lab.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::attention_ladder {

/// Two products of every query with every key that it sees.
inline double attention_flops(const lab::Knobs& knobs) {
  const auto sequence = static_cast<double>(knobs["sequence"]);
  return 4 * static_cast<double>(knobs["heads"] * knobs["head_dim"]) * sequence * (sequence + 1) /
         2;
}

inline lab::Cost attention_cost(const lab::Knobs& knobs, DType rate) {
  const auto bytes =
      2 * static_cast<double>(knobs["heads"] * knobs["sequence"] * knobs["head_dim"]);
  return {.read_bytes = 3 * bytes,
          .write_bytes = bytes,
          .flops = attention_flops(knobs),
          .rate = rate,
          .unit = lab::Cost::Unit::matrix,
          .level = lab::Cost::Level::cache};
}

inline lab::Metric attention_rate() {
  return {.name = "attention",
          .unit = "FLOP/s",
          .better = lab::Metric::Better::higher,
          .from = lab::Metric::From::rate,
          .amount = attention_flops};
}

inline std::vector<lab::Knob> attention_knobs() {
  return {{.name = "heads", .cuda = 32, .max = 4096, .help = "of all sequences of a batch"},
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
           .help = "64 or 128"}};
}

/// Whole numbers, so that scores are exact and 8 bits hold them; of a size that makes some weights
/// matter and many still count.
inline Params bind_attention(lab::Binder& b) {
  const auto heads = b.knob("heads"), sequence = b.knob("sequence"), head_dim = b.knob("head_dim");
  const std::int64_t words = heads * sequence * head_dim;
  return {.q = b.input<Bf16>("q", words, lab::Fill::whole_bf16(-2, 3)),
          .k = b.input<Bf16>("k", words, lab::Fill::whole_bf16_rows(-2, 3, head_dim, kKeyKinds)),
          .v = b.input<Bf16>("v", words, lab::Fill::whole_bf16(-8, 9)),
          .out = b.output<Bf16>("out", words),
          .heads = static_cast<int>(heads),
          .sequence = static_cast<int>(sequence),
          .head_dim = static_cast<int>(head_dim)};
}

}  // namespace gauntlet::labs::attention_ladder
