// What the fused kernels fold into their neighbours, one kernel each: the off position of fusion.
// The norm is that of rows.h without experts to add.
#pragma once
#include <cstdint>

#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/launch_how.h"

namespace gauntlet::kernels::cuda::inline rows {

/// x += y.
struct AddResidual {
  float* x = nullptr;  // [tokens, hidden], and so is y
  const float* y = nullptr;
  std::int64_t num_tokens = 0;
  std::int64_t hidden = 0;  // a multiple of 4
};
void add_residual(const AddResidual& work, const Launch& how);

/// Router logits from rows that are not rounded, as the router of router.h computes them: rounded
/// ones would choose other experts.
struct RouterLogits {
  const float* x = nullptr;               // [tokens, hidden], normed
  const __nv_bfloat16* weight = nullptr;  // [experts, hidden]
  const float* bias = nullptr;            // [experts]
  std::int64_t hidden = 0;                // a multiple of 4
  std::int64_t num_tokens = 0;
  int num_experts = 0;
  float* logits = nullptr;  // [tokens, experts]
};
void router_logits(const RouterLogits& work, const Launch& how);

/// The experts of each token from its router logits, as the router of router.h chooses them.
struct ChooseExperts {
  const float* logits = nullptr;  // [tokens, logits_stride], bias added
  std::int64_t logits_stride = 0;
  std::int64_t num_tokens = 0;
  const std::int32_t* real_tokens = nullptr;  // on the device: rows from there on are padding
  int num_experts = 0;
  int experts_per_token = 0;
  std::int32_t* chosen = nullptr;  // [tokens, experts_per_token], best first; -1 for padding
  float* weights = nullptr;        // [tokens, experts_per_token]
};
void choose_experts(const ChooseExperts& work, const Launch& how);

/// The clamped SwiGLU of rows that hold all gates, then all ups.
struct Swiglu {
  const float* gate_up = nullptr;  // [rows, gate_up_stride]
  std::int64_t gate_up_stride = 0;
  __nv_bfloat16* out = nullptr;  // [rows, out_stride], the rest of a row stays as it is
  std::int64_t out_stride = 0;
  std::int64_t width = 0;  // gates of a row, a multiple of 4
  std::int64_t most_rows = 0;
  const std::int32_t* num_rows = nullptr;  // on the device; null: most_rows
  float limit = 7;
};
void swiglu(const Swiglu& work, const Launch& how);

/// x[t] += the sum over ranks of weight times the row of y that its expert made for t, in the order
/// of ranks. Rows of y are slots as dispatch() of router.h dispatches them: an expert's by
/// ascending token.
struct WeightedCombine {
  float* x = nullptr;        // [tokens, hidden]
  const float* y = nullptr;  // [slots, hidden]
  std::int64_t hidden = 0;   // a multiple of 4
  std::int64_t num_tokens = 0;
  int experts_per_token = 0;
  const std::int32_t* chosen = nullptr;  // [tokens, experts_per_token]; -1 adds nothing
  const float* weights = nullptr;        // the same
  const std::int32_t* first_slot = nullptr;
  const std::int32_t* slot_token = nullptr;
  int first_expert = 0;  // those that made rows; what others would add is left out
  int end_expert = 0;    // 0: all
};
void weighted_combine(const WeightedCombine& work, const Launch& how);

/// Rotates q into a buffer of its own, and k where it stands.
struct Rope {
  float* qkv = nullptr;  // [tokens, qkv_stride]: q heads, k heads, v heads
  std::int64_t qkv_stride = 0;
  const float2* rope = nullptr;  // [positions, 32] {cos, sin}, times YaRN's factor
  __nv_bfloat16* q = nullptr;    // [tokens, heads, 64]
  int num_heads = 0;
  int num_kv_heads = 0;
  AttentionBatch batch = {};
};
void rope(const Rope& work, const Launch& how);

/// Puts rotated k, and v, into their pages. A token whose position has no page (-1) is not stored.
struct StoreKv {
  const float* qkv = nullptr;  // as above
  std::int64_t qkv_stride = 0;
  int num_heads = 0;
  KvCache cache = {};
  AttentionBatch batch = {};
};
void store_kv(const StoreKv& work, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline rows
