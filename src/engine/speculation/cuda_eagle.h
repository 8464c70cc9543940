// The EAGLE-3 drafter whose head runs on a GPU, beside its target.
#pragma once
#include <memory>

#include "core/expected.h"
#include "engine/speculation/drafter.h"
#include "engine/steps/device_seam.h"
#include "model/eagle_head.h"

namespace gauntlet::engine::inline speculation {

struct CudaEagleConfig {
  int device = 0;
  std::int64_t positions = 0;  // of all texts together, that the head can keep
  std::int64_t longest = 0;    // of one
  /// Of the target's executor, which outlives the drafter; null: all goes through the host.
  const DeviceSeam* seam = nullptr;
};

/// `embedding` is the target's. An error tells what this GPU or its memory lacks.
Expected<std::shared_ptr<Drafter>> make_cuda_eagle_drafter(const model::EagleHead& head,
                                                           const model::Matrix& embedding,
                                                           const CudaEagleConfig& config);

}  // namespace gauntlet::engine::inline speculation
