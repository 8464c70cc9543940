// The same call with tf32 allowed: operands lose 13 mantissa bits on the way into the tensor cores,
// sums stay fp32.
#include "catalog/ch01/tf32_matmul/pair.h"
#include "core/cuda/cublas.h"
#include "lab/author/side.h"

namespace gauntlet::ch01::tf32_matmul::cuda {

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  auto cublas = require_cublas(cuda.stream);
  cublas->set_math(CublasMath::tf32);
  return
      [p, cublas] { cublas->sgemm({.m = p.m, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .c = p.c}); };
}

}  // namespace gauntlet::ch01::tf32_matmul::cuda
