// Steps on a GPU: by default shuffled weights, paged KV, captured graphs for decode. Two steps may
// be under way: while one runs, the next is filled in and queued behind it.
#pragma once
#include <memory>
#include <span>

#include "engine/cuda/buffers.h"
#include "engine/cuda/device_model.h"
#include "engine/steps/rank_sum.h"
#include "engine/steps/runner.h"

namespace gauntlet::engine::cuda {

struct RunnerParts {
  int device = 0;  // any thread may call: each call selects it
  Plan plan;
  DeviceModel model;
  KvPoolConfig pool;
  BufferSizes sizes;
  std::shared_ptr<RankSum> rank_sum;  // null: the model is whole
  std::vector<int> export_layers;     // after which residuals can be asked for
  std::int64_t first_logit = 0;       // of a rank's part of the vocabulary
};
std::unique_ptr<Runner> make_runner(RunnerParts parts);

}  // namespace gauntlet::engine::cuda
