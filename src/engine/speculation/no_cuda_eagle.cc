#include "engine/speculation/cuda_eagle.h"

namespace gauntlet::engine::inline speculation {

Expected<std::shared_ptr<Drafter>> make_cuda_eagle_drafter(const model::EagleHead&,
                                                           const model::Matrix&,
                                                           const CudaEagleConfig&) {
  return Error{"this gauntlet was built without CUDA"};
}

}  // namespace gauntlet::engine::inline speculation
