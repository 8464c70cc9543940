// On which stream a kernel is launched, and whether it may start while the one in front ends.
#pragma once
#include <cuda_runtime_api.h>

namespace gauntlet::kernels::cuda {

enum class Overlap { none, dependent };  // dependent: programmatic dependent launch

struct Launch {
  cudaStream_t stream = nullptr;
  Overlap overlap = Overlap::none;
};

}  // namespace gauntlet::kernels::cuda
