// One library call per product: each is too small to fill the GPU, and the next cannot start before
// it ends.
#include "catalog/ch01/batched_gemm/pair.h"
#include "core/cuda/cublas.h"
#include "lab/author/side.h"

namespace gauntlet::ch01::batched_gemm::cuda {

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, cublas = require_cublas(cuda.stream)] {
    const std::int64_t stride = p.size * p.size;
    for (std::int64_t product = 0; product < p.batch; ++product) {
      cublas->gemm({.m = p.size,
                    .n = p.size,
                    .k = p.size,
                    .a = p.a + product * stride,
                    .b = p.b + product * stride,
                    .c = p.c + product * stride});
    }
  };
}

}  // namespace gauntlet::ch01::batched_gemm::cuda
