// What cuDNN does.
#include "catalog/labs/attention_ladder/lab.h"
#include "core/cuda/cudnn_attention.h"
#include "lab/author/side.h"

namespace gauntlet::labs::attention_ladder::cuda {

lab::Side cudnn(const Params& p, const lab::Cuda& cuda) {
  const auto attention = require_cudnn_attention({.heads = p.heads,
                                                  .sequence = p.sequence,
                                                  .head_dim = p.head_dim,
                                                  .scale = p.scale(),
                                                  .q = p.q,
                                                  .k = p.k,
                                                  .v = p.v,
                                                  .out = p.out});
  return {[attention, stream = cuda.stream] { attention->run(stream); },
          {{"cudnn_version", static_cast<double>(attention->version())}}};
}

}  // namespace gauntlet::labs::attention_ladder::cuda
