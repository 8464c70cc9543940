// fp32 products and sums on the FMA units: the library's default for fp32 operands.
#include "catalog/ch01/tf32_matmul/pair.h"
#include "core/cuda/cublas.h"
#include "lab/author/side.h"

namespace gauntlet::ch01::tf32_matmul::cuda {

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  auto cublas = require_cublas(cuda.stream);
  cublas->set_math(CublasMath::standard);
  return
      [p, cublas] { cublas->sgemm({.m = p.m, .n = p.n, .k = p.k, .a = p.a, .b = p.b, .c = p.c}); };
}

}  // namespace gauntlet::ch01::tf32_matmul::cuda
