// The executor on a GPU: by default shuffled weights, paged KV, captured graphs for decode.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/steps/executor.h"
#include "engine/steps/rank_sum.h"
#include "model/weights.h"

namespace gauntlet::engine::inline steps {

struct CudaExecutorConfig {
  EngineOptions options;
  int device = 0;  // as CUDA counts them
  std::int64_t max_sequences = 64;
  std::int64_t max_tokens = 0;  // positions that the full layers can hold in all; 0: what fits
  std::int64_t max_sequence_tokens = 0;  // of one contiguous sequence; 0: its share of max_tokens
  std::int64_t max_batch_tokens = 8192;  // of one step
  double gpu_memory = 0.9;               // share of the free memory to use
  std::shared_ptr<RankSum> rank_sum;     // null: these weights are the whole model
  std::vector<int> export_layers;        // after which residuals can be asked for
  /// Called while weights are loaded, with the part done in [0, 1].
  std::function<void(double)> progress;
};

/// Why there is no CUDA executor on that GPU of this machine: one sentence. Empty where there is
/// one.
std::string no_cuda_executor_reason(int device = 0);

/// Holds an error where there is no GPU that fits, or too little memory, with the numbers.
Expected<std::unique_ptr<Executor>> make_cuda_executor(const model::ModelWeights& weights,
                                                       const CudaExecutorConfig& config);

}  // namespace gauntlet::engine::inline steps
