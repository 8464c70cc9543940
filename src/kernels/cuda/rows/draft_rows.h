// What a draft head does to whole rows that a layer of gpt-oss does not: a plain SwiGLU, rows
// picked out of others, residuals joined, guesses named.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch_how.h"

struct __nv_bfloat16;

namespace gauntlet::kernels::cuda::inline sampling {
struct RowChoice;
}

namespace gauntlet::kernels::cuda::inline rows {

/// out[t] = silu(gate) * up of rows that hold all gates, then all ups.
struct SiluProduct {
  const float* gate_up = nullptr;  // [rows, 2 * width]
  __nv_bfloat16* out = nullptr;    // [rows, out_stride], the rest of a row stays as it is
  std::int64_t out_stride = 0;     // a multiple of 4
  std::int64_t width = 0;          // a multiple of 4
  std::int64_t num_rows = 0;
};
void silu_product(const SiluProduct& work, const Launch& how);

/// out[t] = the norm of the embedding of token ids[t], and behind it the norm of features[t], as
/// bf16. An id below 0 is late, as embed() has it.
struct JoinInputs {
  const __nv_bfloat16* table = nullptr;  // [vocab, hidden]
  const std::int32_t* ids = nullptr;
  const RowChoice* late = nullptr;
  const float* features = nullptr;          // [rows, hidden]
  const float* embedding_weight = nullptr;  // [hidden]
  const float* feature_weight = nullptr;
  float epsilon = 0;
  __nv_bfloat16* out = nullptr;  // [rows, out_stride]
  std::int64_t out_stride = 0;   // a multiple of 4
  float* unrounded = nullptr;    // [rows, hidden]: the second norm before it is rounded, or null
  std::int64_t num_rows = 0;
  std::int64_t hidden = 0;  // a multiple of 4, at most kWidestNorm of rows.h
};
void join_inputs(const JoinInputs& work, const Launch& how);

/// Residuals as a step left them, joined to rows of bf16, behind a norm where the head has one.
struct JoinResiduals {
  /// The host names them with the launch: there is nothing to upload.
  struct Row {
    std::int32_t from = 0;  // a token of the step
    std::int32_t to = 0;    // a row of out
  };
  static constexpr int kMostRows = 64;
  const float* residuals = nullptr;  // [boundaries, tokens, hidden]
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;  // a multiple of 4
  int boundaries = 0;
  const float* weight = nullptr;  // [boundaries * hidden]; null: no norm
  float epsilon = 0;
  __nv_bfloat16* out = nullptr;  // [.., out_stride], the rest of a row stays as it is
  std::int64_t out_stride = 0;   // a multiple of 4
  Row rows[kMostRows];
  int num_rows = 0;
};
void join_residuals(const JoinResiduals& work, const Launch& how);

/// out[i] = kept[slots[i]], whole rows of bf16; where the slot is below 0, out stays as it is.
struct TakeKept {
  const __nv_bfloat16* kept = nullptr;
  const std::int32_t* slots = nullptr;  // [num_rows]
  __nv_bfloat16* out = nullptr;
  std::int64_t stride = 0;  // of both, a multiple of 8
  std::int64_t num_rows = 0;
};
void take_kept(const TakeKept& work, const Launch& how);

/// Guesses in ids of the draft vocabulary become the target's, for the step behind and for the
/// host.
struct NameGuesses {
  const RowChoice* choices = nullptr;
  const std::int32_t* target_ids = nullptr;  // [draft vocab]
  RowChoice* late = nullptr;                 // a token each; null: no step reads them
  std::int32_t* host = nullptr;              // memory of the host that the device writes to
  std::int64_t num_guesses = 0;
};
void name_guesses(const NameGuesses& work, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline rows
