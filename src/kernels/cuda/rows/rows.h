// What happens to whole rows between products: embedding, residual sums, norms, copies.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch_how.h"

struct __nv_bfloat16;

namespace gauntlet::kernels::cuda::inline sampling {
struct RowChoice;
}

namespace gauntlet::kernels::cuda::inline rows {

/// x[t] = table[ids[t]], as float. An id below 0 is late: the token of late[-1 - id], which a step
/// before this one chose; where it chose none, the first.
struct Embed {
  const __nv_bfloat16* table = nullptr;  // [vocab, hidden]
  const std::int32_t* ids = nullptr;
  const RowChoice* late = nullptr;
  float* x = nullptr;  // [tokens, hidden]
  std::int64_t num_tokens = 0;
  std::int64_t hidden = 0;
};
void embed(const Embed& work, const Launch& how);

/// x[t] += the sum of its experts' rows, in their order; then the norm of x[t] times weight, as
/// bf16.
struct Norm {
  float* x = nullptr;              // [tokens, hidden]
  const float* experts = nullptr;  // [tokens * num_experts, hidden]; null: nothing to add
  int num_experts = 0;             // rows per token
  const float* weight = nullptr;   // [hidden]
  float epsilon = 0;
  const std::int32_t* rows = nullptr;  // of x, for each row of out; null: all in order
  __nv_bfloat16* out = nullptr;        // [tokens, out_stride], the rest of a row stays as it is
  std::int64_t out_stride = 0;
  float* unrounded = nullptr;   // [tokens, hidden], the same before it is rounded; null: not wanted
  float* sums = nullptr;        // [tokens, hidden], what is normed; null: not wanted
  std::int64_t num_tokens = 0;  // rows of out
  std::int64_t hidden = 0;      // a multiple of 4, at most kWidestNorm
};
inline constexpr std::int64_t kWidestNorm = 8192;
void norm(const Norm& work, const Launch& how);

/// out[i] = x[rows[i]], whole rows of bf16, for as many as the device counted.
struct Gather {
  const __nv_bfloat16* x = nullptr;
  const std::int32_t* rows = nullptr;
  __nv_bfloat16* out = nullptr;
  std::int64_t stride = 0;  // of both, a multiple of 8
  std::int64_t most_rows = 0;
  const std::int32_t* num_rows = nullptr;  // on the device
};
void gather(const Gather& work, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline rows
