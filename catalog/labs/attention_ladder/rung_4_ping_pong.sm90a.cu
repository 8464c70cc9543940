// The softmax of a block runs beside the products of the next, its own warpgroup's and, in turns,
// those of the others.
#include "catalog/labs/attention_ladder/wgmma_launch.cuh"

namespace gauntlet::labs::attention_ladder::cuda {

lab::Side ping_pong(const Params& p, const lab::Cuda& cuda) { return fastest_in_bf16(p, cuda); }

}  // namespace gauntlet::labs::attention_ladder::cuda
