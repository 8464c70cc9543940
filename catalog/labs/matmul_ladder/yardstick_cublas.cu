// The library's product of the same operands.
#include <cuda_runtime.h>

#include "catalog/labs/matmul_ladder/lab.h"
#include "core/cuda/cublas.h"
#include "lab/author/side.h"

namespace gauntlet::labs::matmul_ladder::cuda {

lab::Side cublas(const Params& p, const lab::Cuda& cuda) {
  return [p, library = require_cublas(cuda.stream)] {
    library->gemm({.m = p.m,
                   .n = p.n,
                   .k = p.k,
                   .a = p.a,
                   .b = p.b,
                   .c = p.c,
                   .b_stored = Stored::transposed,
                   .operands = DType::bf16,
                   .result = DType::bf16});
  };
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
