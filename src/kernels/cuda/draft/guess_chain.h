// All guesses of an EAGLE head behind its first, for one text, in one launch. A head of a few
// megabytes is read in less time than it takes to launch its kernels one after the other.
#pragma once
#include <cstdint>

#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/launch_how.h"

struct __nv_bfloat16;
struct float2;

namespace gauntlet::kernels::cuda::inline sampling {
struct RowChoice;
}

namespace gauntlet::kernels::cuda::inline draft {

struct GuessChainShape {
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t vocab = 0;
  int num_heads = 0;  // of 64 dims, as the cache has them
  int num_kv_heads = 0;

  constexpr std::int64_t width() const { return num_heads * std::int64_t{kHeadDim}; }
  constexpr std::int64_t qkv_rows() const {
    return (num_heads + 2 * num_kv_heads) * std::int64_t{kHeadDim};
  }
  constexpr std::int64_t weights() const {
    return 2 * hidden * qkv_rows() + hidden * width() + 3 * hidden * intermediate + vocab * hidden;
  }
  /// Numbers that blocks pass to each other.
  constexpr std::int64_t scratch() const {
    return qkv_rows() + width() + 2 * hidden + 2 * intermediate + 32;
  }
};

inline constexpr std::int64_t kWidestChain = 512;     // hidden, a number for each thread
inline constexpr std::int64_t kMostChainCols = 2048;  // of a matrix
inline constexpr int kMostChainContext = 6144;        // scores that a block holds
/// What eight SMs read from L2 in the time of the launches that they save.
inline constexpr std::int64_t kMostChainWeights = std::int64_t{4} << 20;

constexpr bool fits_guess_chain(const GuessChainShape& shape) {
  return shape.hidden % 8 == 0 && shape.hidden <= kWidestChain && shape.width() <= kMostChainCols &&
         shape.intermediate % 8 == 0 && shape.intermediate <= kMostChainCols &&
         shape.weights() <= kMostChainWeights;
}

struct GuessChain {
  GuessChainShape shape;
  // Row by row, bf16.
  const __nv_bfloat16* qkv = nullptr;        // [qkv rows, 2 * hidden]
  const __nv_bfloat16* o = nullptr;          // [hidden, width]
  const __nv_bfloat16* gate_up = nullptr;    // [2 * intermediate, hidden]: gates, then ups
  const __nv_bfloat16* down = nullptr;       // [hidden, intermediate]
  const __nv_bfloat16* lm_head = nullptr;    // [vocab, hidden]
  const __nv_bfloat16* embedding = nullptr;  // [vocab, hidden]
  const float *input_norm = nullptr, *hidden_norm = nullptr, *mlp_norm = nullptr,
              *final_norm = nullptr;  // [hidden]
  float epsilon = 0;
  bool norm_before_residual = false;
  const float2* rope = nullptr;           // [positions, 32] {cos, sin}
  KvCache cache = {};                     // bf16
  const std::int32_t* context = nullptr;  // [guesses], positions held before each
  const std::int32_t* table = nullptr;    // the text's pages
  const float* features = nullptr;        // [hidden], that the first guess came of
  RowChoice* choices = nullptr;           // [guesses]: the first is there, the others are written
  int num_guesses = 0;
  float* logits = nullptr;   // [vocab], of the last guess
  float* scratch = nullptr;  // [shape.scratch()], aligned to 16 bytes
};

/// The shape fits, and no context is longer than kMostChainContext.
void guess_chain(const GuessChain& work, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline draft
