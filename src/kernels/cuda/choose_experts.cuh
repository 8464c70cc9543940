// From a token's router logits to its best experts and their softmax.
#pragma once
#include <cstdint>

#include "kernels/cuda/router.h"

namespace gauntlet::kernels::cuda {

struct Choice {
  int expert = -1;
  float weight = 0;
};

/// One warp takes the largest again and again; the lower expert wins a tie. Lane r has the choice
/// of rank r. `Work` is Router, or another that names what is chosen and where it goes as Router
/// does.
template <class Work>
__device__ __forceinline__ Choice choose(const Work& work, std::int64_t token,
                                         const float* logits) {
  constexpr int kPerLane = kMostRouterExperts / 32;
  const int lane = threadIdx.x % 32;
  float mine[kPerLane];
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int e = lane + 32 * k;
    mine[k] = e < work.num_experts ? logits[e] : -INFINITY;
  }
  float best[kMostExpertsPerToken];
  int expert[kMostExpertsPerToken];
#pragma unroll
  for (int r = 0; r < kMostExpertsPerToken; ++r) {
    if (r >= work.experts_per_token) break;
    float top = -INFINITY;
    int at = kMostRouterExperts;
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (mine[k] > top) top = mine[k], at = lane + 32 * k;
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFF, top, offset);
      const int other_at = __shfl_xor_sync(0xFFFFFFFF, at, offset);
      if (other > top || (other == top && other_at < at)) top = other, at = other_at;
    }
    // Logits that are all NaN leave no largest: any expert will do, the row is lost.
    if (at == kMostRouterExperts) at = r;
    best[r] = top;
    expert[r] = at;
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (at == lane + 32 * k) mine[k] = -INFINITY;
    }
  }
  float sum = 0;
#pragma unroll
  for (int r = 0; r < kMostExpertsPerToken; ++r) {
    if (r < work.experts_per_token) sum += __expf(best[r] - best[0]);
  }
  const bool real = work.real_tokens == nullptr || token < *work.real_tokens;
  Choice own;
#pragma unroll
  for (int r = 0; r < kMostExpertsPerToken; ++r) {
    if (r < work.experts_per_token && lane == r) {
      own = {real ? expert[r] : -1, __expf(best[r] - best[0]) / sum};
      work.chosen[token * work.experts_per_token + r] = own.expert;
      work.weights[token * work.experts_per_token + r] = own.weight;
    }
  }
  return own;
}

}  // namespace gauntlet::kernels::cuda
