#include "engine/steps/cuda_rank.h"

namespace gauntlet::engine::inline steps {

Expected<CudaRank> make_cuda_rank(ranks::Group&, const model::ModelWeights&,
                                  const CudaRankConfig& config) {
  return Error{no_cuda_executor_reason(config.executor.device)};
}

}  // namespace gauntlet::engine::inline steps
