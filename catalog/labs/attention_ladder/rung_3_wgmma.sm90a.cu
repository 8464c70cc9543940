// A warp copies tiles by the tensor engine, warpgroups multiply them where they lie and keep
// queries, weights and sums to themselves; each does one thing after the other.
#include "catalog/labs/attention_ladder/wgmma_launch.cuh"

namespace gauntlet::labs::attention_ladder::cuda {

lab::Side wgmma(const Params& p, const lab::Cuda& cuda) {
  if (p.head_dim == 64) {
    return attend_in_bf16<Config<64, 3, Turns::free, Softmax::alone>>(p, cuda);
  }
  check(p.head_dim == 128, "rungs have heads of 64 and 128 dimensions");
  return attend_in_bf16<Config<128, 2, Turns::free, Softmax::alone>>(p, cuda);
}

}  // namespace gauntlet::labs::attention_ladder::cuda
