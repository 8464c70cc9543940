// The feeding threads and their page-locked slots are on the node that is farthest from the GPU, as
// a scheduler that does not know of it may put them.
#include "catalog/ch03/gpu_numa_affinity/placed.h"

namespace gauntlet::ch03::gpu_numa_affinity::cuda {

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return placed_on(&GpuPlaces::far, p, cuda);
}

}  // namespace gauntlet::ch03::gpu_numa_affinity::cuda
