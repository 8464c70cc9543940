// Stands in for cuda/device.cc in a build without the CUDA toolkit.
#include "core/cuda/device.h"

namespace gauntlet {

GpuQuery query_gpus() { return {.reason = "built without CUDA"}; }

}  // namespace gauntlet
