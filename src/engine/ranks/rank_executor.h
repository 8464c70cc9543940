// A model on all ranks of a group: rank 0 plans steps and sends them, every rank computes them.
#pragma once
#include <memory>
#include <optional>

#include "core/ranks/group.h"
#include "engine/ranks/group_parts.h"
#include "engine/ranks/mesh.h"
#include "engine/ranks/rank_pulse.h"
#include "engine/steps/cpu_executor.h"
#include "engine/steps/cuda_rank.h"

namespace gauntlet::engine::inline on_ranks {

struct RankConfig {
  Mesh mesh;
  RankSums sums = RankSums::reduced;
  CpuExecutorConfig cpu;  // rank 0's pool is everyone's
  /// On GPUs instead: rank 0's limits are everyone's, the device is each rank's own.
  std::optional<CudaExecutorConfig> cuda = {};
  /// How long a rank waits for another in one call, once all have packed their weights.
  double timeout_s = 30;
  RankMeeting meeting = RankMeeting::on_streams;  // of GPUs
  /// Watches this rank's steps, all of them; null: nobody does. Where it changes choices, as a tape
  /// of them does, it has to do so on all ranks.
  LayerProbe* probe = nullptr;
  /// Rank 0's: it asks the others between steps. Null: nobody is asked.
  std::shared_ptr<RankPulse> pulse = {};
};

/// Holds an error for what ranks of GPUs do not do.
Expected<void> check_gpu_ranks(const Mesh& mesh, RankSums sums);

/// Rank 0's. It ends the others when it is destroyed. A step that other ranks do not come to throws
/// RankFailure. The group outlives it.
Expected<std::unique_ptr<Executor>> lead_ranks(ranks::Group& world,
                                               const model::ModelWeights& weights,
                                               const RankConfig& config);

/// Of the other ranks: computes what rank 0 sends until that ends; then what went wrong, if
/// anything. The weights are the whole model's, of which it reads its part.
Expected<void> follow_ranks(ranks::Group& world, const model::ModelWeights& weights,
                            const RankConfig& config);

}  // namespace gauntlet::engine::inline on_ranks
