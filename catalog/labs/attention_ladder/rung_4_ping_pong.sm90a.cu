// The softmax of a block runs beside the products of the next, its own warpgroup's and, in turns,
// those of the others.
#include "catalog/labs/attention_ladder/wgmma_launch.cuh"

namespace gauntlet::labs::attention_ladder::cuda {

lab::Side ping_pong(const Params& p, const lab::Cuda& cuda) {
  if (p.head_dim == 64) {
    return attend_in_bf16<Config<64, 128, 3, Turns::ping_pong, Softmax::beside_products>>(p, cuda);
  }
  check(p.head_dim == 128, "rungs have heads of 64 and 128 dimensions");
  return attend_in_bf16<Config<128, 128, 2, Turns::ping_pong, Softmax::beside_products>>(p, cuda);
}

}  // namespace gauntlet::labs::attention_ladder::cuda
