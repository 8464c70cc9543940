// The one way kernels are launched.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>

#include "core/cuda/check.h"
#include "kernels/cuda/launch_how.h"

namespace gauntlet::kernels::cuda {

struct Shape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  unsigned cluster = 1;  // blocks, neighbours in x; more than one from sm_90 on
};

/// A kernel that overlaps must call ptx::grid_dependency_wait() before it touches what the kernels
/// in front of it wrote or still read.
template <typename... Params, typename... Arguments>
void launch(void (*kernel)(Params...), const Shape& shape, const Launch& how,
            const Arguments&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed =
      how.overlap == Overlap::dependent ? 1 : 0;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {.x = shape.cluster, .y = 1, .z = 1};
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = how.stream;
  config.attrs = attributes;
  config.numAttrs = shape.cluster > 1 ? 2 : 1;
  cuda_check(cudaLaunchKernelEx(&config, kernel, static_cast<Params>(arguments)...));
}

}  // namespace gauntlet::kernels::cuda
