// From a token's router logits to its best experts and their softmax.
#pragma once
#include <cstdint>

#include "kernels/cuda/routing/router.h"

namespace gauntlet::kernels::cuda::inline routing {

struct Choice {
  int expert = -1;
  float weight = 0;
};

/// Integers that compare as the numbers do; NaN is below all of them and above 0.
__device__ __forceinline__ std::uint32_t sortable(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  if (isnan(value)) return 1;
  return bits ^ (bits >> 31 != 0 ? 0xFFFFFFFFu : 0x80000000u);
}

__device__ __forceinline__ float from_sortable(std::uint32_t key) {
  return __uint_as_float(key ^ (key >> 31 != 0 ? 0x80000000u : 0xFFFFFFFFu));
}

/// One warp, whose lane l brings the logits of experts l, l + 32 ..., takes the largest again and
/// again; the lower expert wins a tie. Lane r has the choice of rank r. `Work` is Router, or
/// another that names what is chosen and where it goes as Router does.
template <int kPerLane, class Work>
__device__ __forceinline__ Choice choose(const Work& work, std::int64_t token, bool is_real,
                                         const float (&logits)[kPerLane]) {
  constexpr unsigned kAll = 0xFFFFFFFF;
  const int lane = threadIdx.x % 32;
  std::uint32_t keys[kPerLane];  // 0: no such expert, or taken
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    keys[k] = lane + 32 * k < work.num_experts ? sortable(logits[k]) : 0;
  }
  Choice own;
  float largest = 0, sum = 0;
  for (int r = 0; r < work.experts_per_token; ++r) {
    std::uint32_t key = keys[0];
    int at = lane;
#pragma unroll
    for (int k = 1; k < kPerLane; ++k) {
      if (keys[k] > key) key = keys[k], at = lane + 32 * k;
    }
    const std::uint32_t best = __reduce_max_sync(kAll, key);
    at = static_cast<int>(__reduce_min_sync(kAll, key == best ? static_cast<unsigned>(at) : kAll));
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (at == lane + 32 * k) keys[k] = 0;
    }
    const float logit = from_sortable(best);
    if (r == 0) largest = logit;
    const float weight = expf(logit - largest);
    sum += weight;
    if (lane == r) own = {at, weight};
  }
  own.weight /= sum;
  if (!is_real) own.expert = -1;
  if (lane < work.experts_per_token) {
    work.chosen[token * work.experts_per_token + lane] = own.expert;
    work.weights[token * work.experts_per_token + lane] = own.weight;
  }
  return own;
}

/// The same from logits in memory.
template <class Work>
__device__ __forceinline__ Choice choose(const Work& work, std::int64_t token,
                                         const float* logits) {
  float mine[kMostRouterExperts / 32];
#pragma unroll
  for (int k = 0; k < kMostRouterExperts / 32; ++k) {
    const int expert = threadIdx.x % 32 + 32 * k;
    mine[k] = expert < work.num_experts ? logits[expert] : 0;
  }
  return choose(work, token, work.real_tokens == nullptr || token < *work.real_tokens, mine);
}

}  // namespace gauntlet::kernels::cuda::inline routing
