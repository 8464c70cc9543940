// The last rung of attention_ladder.
#include "catalog/labs/attention_ladder/wgmma_launch.cuh"
#include "catalog/labs/attention_ladder_fp8/lab.h"

namespace gauntlet::labs::attention_ladder_fp8::cuda {

lab::Side bf16(const Params& p, const lab::Cuda& cuda) {
  return attention_ladder::cuda::fastest_in_bf16(p.in_bf16, cuda);
}

}  // namespace gauntlet::labs::attention_ladder_fp8::cuda
