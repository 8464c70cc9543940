// From scores in memory to the speed of the library: what does each step of causal attention on
// tensor cores buy?
#pragma once
#include <cmath>
#include <cstdint>

#include "core/narrow_floats.h"

namespace gauntlet::labs::attention_ladder {

/// Heads whose scores the naive rung keeps in memory at a time.
inline constexpr std::int64_t kScoredHeads = 4;
/// Different keys of a head: a reference can compute the scores of all of them.
inline constexpr std::int64_t kKeyKinds = 64;

struct Params {
  const Bf16* q = nullptr;  // [heads, sequence, head_dim]
  const Bf16* k = nullptr;  // likewise
  const Bf16* v = nullptr;  // likewise
  // likewise: softmax(q·kᵀ/√head_dim, keys up to the query)·v
  Bf16* out = nullptr;
  int heads = 0;  // of all sequences of a batch
  int sequence = 0;
  int head_dim = 0;
  float* scores = nullptr;  // [kScoredHeads, sequence, sequence], scratch of rungs that keep them
  Bf16* weights = nullptr;  // likewise

  float scale() const { return 1 / std::sqrt(static_cast<float>(head_dim)); }
  /// For exponentials that are powers of two.
  float log2_scale() const { return scale() * 1.44269504f; }
};

}  // namespace gauntlet::labs::attention_ladder
