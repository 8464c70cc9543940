// Attention as a first CUDA port writes it: scores in memory, softmax, weighted sum, a kernel each,
// float arithmetic on CUDA cores. Takes any batch.
#pragma once
#include <algorithm>
#include <cstddef>

#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/launch_how.h"

namespace gauntlet::kernels::cuda::inline attention {

/// Scores of one query token.
constexpr std::size_t naive_row_bytes(int num_heads, int max_context) {
  return static_cast<std::size_t>(num_heads) * static_cast<std::size_t>(max_context) *
         sizeof(float);
}

/// How many query tokens' scores fit; 0: not even one.
constexpr int naive_rows(const Attention& attention, std::size_t workspace_bytes) {
  const std::size_t row = naive_row_bytes(attention.num_heads, attention.batch.max_context);
  const auto tokens = static_cast<std::size_t>(attention.batch.num_tokens);
  return row == 0 ? attention.batch.num_tokens
                  : static_cast<int>(std::min(workspace_bytes / row, tokens));
}

struct NaiveWorkspace {
  float* scores = nullptr;
  std::size_t bytes = 0;  // at least one row's
};

/// Three launches for each workspace full of query tokens.
void naive_attention(const Attention& attention, const NaiveWorkspace& workspace,
                     const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline attention
