// What follows the q, k, v product: rotates q and k, and stores k and v in their pages.
#pragma once
#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/launch_how.h"

namespace gauntlet::kernels::cuda::inline attention {

struct RopeKv {
  const float* qkv = nullptr;  // [tokens, qkv_stride]: q heads, k heads, v heads
  std::int64_t qkv_stride = 0;
  const float2* rope = nullptr;  // [positions, 32] {cos, sin}, times YaRN's factor
  __nv_bfloat16* q = nullptr;    // [tokens, heads, 64]
  int num_heads = 0;
  KvCache cache = {};
  AttentionBatch batch = {};
};

/// A token whose position has no page (-1) is rotated and not stored.
void rope_kv(const RopeKv& rope, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline attention
