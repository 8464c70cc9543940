#include "engine/steps/cuda_executor.h"

namespace gauntlet::engine::inline steps {

std::string no_cuda_executor_reason(int) { return "this gauntlet was built without CUDA"; }

Expected<std::unique_ptr<Executor>> make_cuda_executor(const model::ModelWeights&,
                                                       const CudaExecutorConfig&) {
  return Error{no_cuda_executor_reason(0)};
}

}  // namespace gauntlet::engine::inline steps
