// The executor on CPUs: packed weights, pinned threads, one fork per step.
#pragma once
#include <functional>
#include <memory>

#include "engine/steps/executor.h"
#include "engine/steps/rank_parts.h"
#include "engine/steps/rank_sum.h"
#include "model/weights.h"

namespace gauntlet::engine::inline steps {

struct CpuExecutorConfig {
  EngineOptions options;
  std::int64_t max_sequences = 64;
  std::int64_t max_tokens = 0;  // positions that the full layers can hold in all; 0: see below
  std::int64_t max_batch_tokens = 512;  // of one step
  std::shared_ptr<RankSum> rank_sum;    // null: these weights are the whole model
  std::shared_ptr<RankParts> parts;     // null: no other rank has a part of the model
  int first_cpu = 0;                    // of the process, for ranks that share it
  std::vector<int> export_layers;       // after which residuals can be asked for
  /// Called while weights are packed, with the part done in [0, 1].
  std::function<void(double)> progress;
};

/// Positions for all sequences at their full length, as far as that memory holds them, and for one
/// at least.
std::int64_t default_positions(const model::ModelConfig& shape, KvType kv,
                               std::int64_t max_sequences, std::int64_t memory_bytes);

/// Pages of a CPU's pool: the same on all ranks, whatever part of the model each has.
KvPoolConfig cpu_pool(const model::ModelConfig& whole, KvType kv, const CpuExecutorConfig& config);

/// What computes steps over such a pool, without the pool itself.
Expected<std::unique_ptr<Runner>> make_cpu_runner(const model::ModelWeights& weights,
                                                  const CpuExecutorConfig& config,
                                                  const KvPoolConfig& pool);

/// Packs the weights and lets their source pages go.
Expected<std::unique_ptr<Executor>> make_cpu_executor(const model::ModelWeights& weights,
                                                      const CpuExecutorConfig& config);

}  // namespace gauntlet::engine::inline steps
