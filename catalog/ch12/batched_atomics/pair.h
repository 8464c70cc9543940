// What does it cost to count in shared memory item by item?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::batched_atomics {

constexpr int kExperts = 16;

/// How many tokens a router sends to each expert: to the one of the largest logit, the first of
/// equal ones.
struct Params {
  const std::int8_t* logits;  // [tokens, kExperts]
  std::uint32_t* count;       // [kExperts]
  std::int64_t tokens;
};

/// Where a token goes.
constexpr int expert_of(const std::int8_t* logits) {
  int best = 0;
  std::int8_t largest = logits[0];
  for (int expert = 1; expert < kExperts; ++expert) {
    if (logits[expert] > largest) {
      largest = logits[expert];
      best = expert;
    }
  }
  return best;
}

}  // namespace gauntlet::ch12::batched_atomics
