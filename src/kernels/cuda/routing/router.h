// From a residual row to its experts: norm, router logits, the best few, their softmax; then all
// tokens dispatched by expert.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch_how.h"

struct __nv_bfloat16;

namespace gauntlet::kernels::cuda::inline routing {

inline constexpr int kMostExpertsPerToken = 8;
inline constexpr int kMostRouterExperts = 128;

struct Router {
  const float* x = nullptr;            // [tokens, hidden]
  const float* norm_weight = nullptr;  // [hidden]
  float epsilon = 0;
  const __nv_bfloat16* weight = nullptr;  // [experts, hidden]
  const float* bias = nullptr;            // [experts]
  std::int64_t hidden = 0;                // a multiple of 8, at most kWidestRouter
  std::int64_t num_tokens = 0;
  const std::int32_t* real_tokens = nullptr;  // on the device: rows from there on are padding
  int num_experts = 0;
  int experts_per_token = 0;
  int num_sms = 132;

  __nv_bfloat16* normed = nullptr;  // [tokens, normed_stride]
  std::int64_t normed_stride = 0;   // a multiple of 8
  std::int32_t* chosen = nullptr;   // [tokens, experts_per_token], best first; -1 for padding
  float* weights = nullptr;         // [tokens, experts_per_token]
};
inline constexpr std::int64_t kWidestRouter = 8192;

/// The choices by expert, a token's place among an expert's slots being its order.
struct Dispatch {
  const std::int32_t* chosen = nullptr;
  const float* weights = nullptr;
  std::int64_t num_tokens = 0;
  int num_experts = 0;
  int experts_per_token = 0;
  std::int32_t* first_slot = nullptr;  // [experts + 1]
  std::int32_t* slot_token = nullptr;  // [tokens * experts_per_token]
  std::int32_t* slot_row = nullptr;    // token * experts_per_token + rank
  float* slot_weight = nullptr;
};

/// A token's bits are the same in any company, and by route_and_dispatch().
void route(const Router& work, const Launch& how);
void dispatch(const Dispatch& work, const Launch& how);

/// Both in one launch: the last block to finish dispatches. For up to kMostDispatchTokens tokens;
/// `finished` is a zeroed counter that is left zeroed.
inline constexpr std::int64_t kMostDispatchTokens = 256;
void route_and_dispatch(const Router& work, const Dispatch& dispatch, std::int32_t* finished,
                        const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline routing
