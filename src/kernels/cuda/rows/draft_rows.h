// What a draft head does to whole rows that a layer of gpt-oss does not: a plain SwiGLU, and rows
// picked out of others.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch_how.h"

struct __nv_bfloat16;

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

/// out[i] = x[rows[i]], whole rows of float. `out` is no part of x.
struct TakeRows {
  const float* x = nullptr;            // [.., hidden]
  const std::int32_t* rows = nullptr;  // [num_rows]
  float* out = nullptr;                // [num_rows, hidden]
  std::int64_t num_rows = 0;
  std::int64_t hidden = 0;  // a multiple of 4
};
void take_rows(const TakeRows& work, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline rows
