// What runs on any GPU from Ampere on: mma.sync on a ring that cp.async fills, as
// matmul_ladder/rung_4_cp_async.cu has it.
#include "catalog/labs/matmul_ladder_blackwell/lab.h"
#include "lab/author/side.h"

namespace gauntlet::labs::matmul_ladder::cuda {
lab::Side cp_async(const Params& p, const lab::Cuda& cuda);
}

namespace gauntlet::labs::matmul_ladder_blackwell::cuda {

lab::Side cp_async(const Params& p, const lab::Cuda& cuda) {
  return matmul_ladder::cuda::cp_async(p, cuda);
}

}  // namespace gauntlet::labs::matmul_ladder_blackwell::cuda
