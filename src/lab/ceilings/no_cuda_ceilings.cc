#include "lab/ceilings/ceiling_backends.h"

namespace gauntlet::lab::inline ceilings {

Expected<Ceilings> measure_cuda_ceilings(const MachineInfo&, const CeilingProgress&) {
  return Error{
      "the ceilings of a GPU cannot be measured: built without CUDA; install the toolkit and build "
      "again"};
}

}  // namespace gauntlet::lab::inline ceilings
