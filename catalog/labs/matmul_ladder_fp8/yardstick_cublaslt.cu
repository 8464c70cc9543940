// The library's product of the same operands with the same scales.
#include <cuda_runtime.h>

#include "catalog/labs/matmul_ladder_fp8/lab.h"
#include "core/cuda/cublas_lt.h"
#include "lab/author/side.h"

namespace gauntlet::labs::matmul_ladder_fp8::cuda {

lab::Side cublaslt(const Params& p, const lab::Cuda& cuda) {
  const auto layer = require_block_scaled({.m = p.m,
                                           .n = p.n,
                                           .k = p.k,
                                           .x = p.a,
                                           .w = p.b,
                                           .x_scales = p.a_scales,
                                           .w_scales = p.b_scales,
                                           .y = p.c});
  return [layer, stream = cuda.stream] { layer->run(stream); };
}

}  // namespace gauntlet::labs::matmul_ladder_fp8::cuda
