#include "engine/cpu/routing.h"

#include <cmath>

namespace gauntlet::engine::cpu {

void choose_experts(const float* logits, std::int64_t num_experts, std::int64_t k,
                    std::int32_t* experts, float* weights) {
  // Insertion into a short sorted list; a NaN logit never wins a place from a number.
  std::int64_t held = 0;
  for (std::int64_t e = 0; e < num_experts; ++e) {
    std::int64_t at = held;
    while (at > 0 && logits[e] > logits[experts[at - 1]]) --at;
    if (at >= k) continue;
    if (held < k) ++held;
    for (std::int64_t i = held - 1; i > at; --i) experts[i] = experts[i - 1];
    experts[at] = static_cast<std::int32_t>(e);
  }
  float sum = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    weights[i] = std::exp(logits[experts[i]] - logits[experts[0]]);
    sum += weights[i];
  }
  for (std::int64_t i = 0; i < k; ++i) weights[i] /= sum;
}

void group_by_expert(const std::int32_t* experts, const float* weights, std::int64_t num_tokens,
                     std::int64_t k, std::int64_t num_experts, Routing& routing) {
  const std::int64_t slots = num_tokens * k;
  routing.first_slot.assign(num_experts + 1, 0);
  routing.slot_token.resize(slots);
  routing.slot_weight.resize(slots);
  for (std::int64_t i = 0; i < slots; ++i) ++routing.first_slot[experts[i] + 1];
  for (std::int64_t e = 0; e < num_experts; ++e) routing.first_slot[e + 1] += routing.first_slot[e];
  std::vector<std::int32_t> next(routing.first_slot.begin(), routing.first_slot.end() - 1);
  for (std::int64_t i = 0; i < slots; ++i) {
    const std::int32_t slot = next[experts[i]]++;
    routing.slot_token[slot] = static_cast<std::int32_t>(i / k);
    routing.slot_weight[slot] = weights[i];
  }
}

}  // namespace gauntlet::engine::cpu
