// The executor on CPUs: packed weights, pinned threads, one fork per step.
#pragma once
#include <functional>
#include <memory>

#include "engine/steps/executor.h"
#include "engine/steps/rank_sum.h"
#include "model/weights.h"

namespace gauntlet::engine::inline steps {

struct CpuExecutorConfig {
  EngineOptions options;
  std::int64_t max_sequences = 64;
  std::int64_t max_tokens = 0;  // positions that the full layers can hold in all; 0: see below
  std::int64_t max_batch_tokens = 512;  // of one step
  std::shared_ptr<RankSum> rank_sum;    // null: these weights are the whole model
  std::vector<int> export_layers;       // after which residuals can be asked for
  /// Called while weights are packed, with the part done in [0, 1].
  std::function<void(double)> progress;
};

/// Positions for all sequences at their full length, as far as that memory holds them, and for one
/// at least.
std::int64_t default_positions(const model::ModelConfig& shape, KvType kv,
                               std::int64_t max_sequences, std::int64_t memory_bytes);

/// Packs the weights and lets their source pages go.
Expected<std::unique_ptr<Executor>> make_cpu_executor(const model::ModelWeights& weights,
                                                      const CpuExecutorConfig& config);

}  // namespace gauntlet::engine::inline steps
