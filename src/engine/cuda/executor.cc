#include "engine/cuda/runner.h"
#include "engine/cuda/sizing.h"
#include "engine/steps/cuda_executor.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline steps {

Expected<std::unique_ptr<Executor>> make_cuda_executor(const model::ModelWeights& weights,
                                                       const CudaExecutorConfig& config) {
  auto sizing = cuda::size_cuda_executor(weights, config);
  if (!sizing) return sizing.error();
  Plan plan{
      .expert_weights = sizing->plan.expert_weights, .kv = sizing->plan.kv, .cuda = sizing->plan};
  auto model = cuda::load_device_model(weights, sizing->plan, config.progress);
  return std::unique_ptr<Executor>(std::make_unique<PooledExecutor>(
      sizing->pool, cuda::make_runner({.device = config.device,
                                       .plan = std::move(plan),
                                       .model = std::move(model),
                                       .pool = sizing->pool,
                                       .sizes = sizing->buffers,
                                       .rank_sum = config.rank_sum,
                                       .export_layers = config.export_layers})));
}

}  // namespace gauntlet::engine::inline steps
