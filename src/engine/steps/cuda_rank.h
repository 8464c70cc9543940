// One rank of a model on GPUs: what it computes steps with, made together with the others.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/ranks/group.h"
#include "engine/kv/kv_pool.h"
#include "engine/steps/cuda_executor.h"
#include "engine/steps/runner.h"
#include "model/slice.h"

namespace gauntlet::engine::inline steps {

/// Where ranks that share a GPU meet for a sum: their streams wait for each other, or their hosts
/// do, so that no stream ever waits. That is for tools that run one kernel at a time, and slow:
/// nothing is captured.
enum class RankMeeting { on_streams, on_hosts };

struct CudaRankConfig {
  CudaExecutorConfig executor;       // rank 0's limits hold for all; the device is this rank's
  std::vector<model::Slice> slices;  // what each rank holds
  std::vector<int> attention;        // the ranks that divide attention with this one, and itself
  double timeout_s = 30;             // for a rank to come to a sum
  RankMeeting meeting = RankMeeting::on_streams;
};

struct CudaRank {
  std::unique_ptr<Runner> runner;
  KvPoolConfig pool;  // all ranks have the same
  std::int64_t kv_bytes = 0;
};

/// All ranks of the group call it, with the whole model's weights, of which each reads its part.
/// Ranks that share one GPU add up over CUDA IPC, ranks with a GPU each by NCCL; anything between
/// is refused. Before the first step all must have it.
Expected<CudaRank> make_cuda_rank(ranks::Group& world, const model::ModelWeights& weights,
                                  const CudaRankConfig& config);

}  // namespace gauntlet::engine::inline steps
