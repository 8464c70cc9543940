// From logits to tokens on the GPU: the likeliest one or a seeded draw, with its log-probability,
// and the log-probabilities of given tokens. Nothing but those goes to the host.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch_how.h"

namespace gauntlet::kernels::cuda::inline sampling {

/// How one row is drawn from; the same meaning as on the CPU.
struct DrawParams {
  float temperature = 0;  // 0: the largest logit, the lowest id on ties
  float top_p = 1;
  float min_p = 0;
  std::int32_t top_k = 0;  // 0: no limit
  double point = 0;        // in [0, 1): where in the weights laid end to end the draw falls
};

struct RowChoice {
  std::int32_t token = -1;  // -1: no logit can be chosen
  float log_probability = 0;
  float target_log_probability = 0;
};

struct Sample {
  const float* logits = nullptr;  // [rows, stride]; read 16 bytes at a time, to the end of the last
  std::int64_t stride = 0;
  std::int64_t num_rows = 0;
  std::int64_t vocab = 0;
  const std::int32_t* targets = nullptr;   // [rows], -1: none; null: none at all
  const DrawParams* params = nullptr;      // [rows]
  const std::uint32_t* allowed = nullptr;  // [rows, words], a bit per id; null: everything
  std::int64_t allowed_words = 0;
  RowChoice* out = nullptr;  // [rows]
};

inline constexpr std::int64_t kMostVocab = 1 << 19;

/// For rows that all take their largest logit, from everything.
void sample_greedy(const Sample& work, const Launch& how);

/// For any rows.
void sample(const Sample& work, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline sampling
