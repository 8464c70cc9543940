// The feeding threads and their page-locked slots are on the GPU's own node.
#include "catalog/ch03/gpu_numa_affinity/placed.h"

namespace gauntlet::ch03::gpu_numa_affinity::cuda {

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return placed_on(&GpuPlaces::near, p, cuda);
}

}  // namespace gauntlet::ch03::gpu_numa_affinity::cuda
