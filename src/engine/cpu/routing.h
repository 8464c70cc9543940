// Which tokens go to which expert: top-k of the router's logits, softmax over those alone, then
// grouped by expert so that each expert's weights are read once.
#pragma once
#include <cstdint>
#include <vector>

namespace gauntlet::engine::cpu {

struct Routing {
  // Slot s of expert e, for s in [first_slot[e], first_slot[e + 1]).
  std::vector<std::int32_t> first_slot;
  std::vector<std::int32_t> slot_token;
  std::vector<float> slot_weight;
};

/// The k largest of `logits`, the lower expert first on ties, with their softmax weights.
void choose_experts(const float* logits, std::int64_t num_experts, std::int64_t k,
                    std::int32_t* experts, float* weights);

/// Groups choices [token][k]; within an expert tokens stay in order.
void group_by_expert(const std::int32_t* experts, const float* weights, std::int64_t num_tokens,
                     std::int64_t k, std::int64_t num_experts, Routing& routing);

}  // namespace gauntlet::engine::cpu
