// What does causal attention gain from products in 8 bits when queries, keys and values come in 16,
// and what does it pay for?
#pragma once
#include "catalog/labs/attention_ladder/lab.h"
#include "core/narrow_floats.h"

namespace gauntlet::labs::attention_ladder_fp8 {

struct Params {
  attention_ladder::Params in_bf16;
  F8e4m3* q;  // [heads, sequence, head_dim], scratch
  F8e4m3* k;  // likewise
  F8e4m3* v;  // [heads, head_dim, sequence], scratch: turned round, keys in attention's order
};

}  // namespace gauntlet::labs::attention_ladder_fp8
