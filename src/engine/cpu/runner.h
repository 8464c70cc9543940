// Steps on CPUs: packed weights, pinned threads, one fork per step. A step is computed when it is
// finished, by the threads of this runner and the one that asks.
#pragma once
#include <memory>

#include "core/os/threads.h"
#include "engine/cpu/packed_model.h"
#include "engine/steps/rank_sum.h"
#include "engine/steps/runner.h"

namespace gauntlet::engine::cpu {

struct RunnerParts {
  Plan plan;
  KvPoolConfig pool;
  std::int64_t max_tokens = 0;  // of a step
  std::unique_ptr<ThreadPool> threads;
  PackedModel model;
  std::shared_ptr<RankSum> rank_sum;  // null: the model is whole
  std::vector<int> export_layers;     // after which residuals can be asked for
};
std::unique_ptr<Runner> make_runner(RunnerParts parts);

}  // namespace gauntlet::engine::cpu
