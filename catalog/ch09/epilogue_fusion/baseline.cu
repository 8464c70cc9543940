// The library's product, then a kernel that adds the bias and rectifies.
#include <cuda_runtime.h>

#include "catalog/ch09/epilogue_fusion/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/cublas_lt.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::epilogue_fusion::cuda {
namespace {

constexpr int kThreads = 256;

/// One block per row, four words per thread and turn.
__global__ void __launch_bounds__(kThreads) add_bias_and_rectify(Params p) {
  float* row = p.y + std::int64_t{blockIdx.x} * p.n;
  for (std::int64_t i = 4 * threadIdx.x; i < p.n; i += 4 * kThreads) {
    const float4 x = *reinterpret_cast<const float4*>(row + i);
    const float4 b = *reinterpret_cast<const float4*>(p.bias + i);
    *reinterpret_cast<float4*>(row + i) = make_float4(fmaxf(x.x + b.x, 0), fmaxf(x.y + b.y, 0),
                                                      fmaxf(x.z + b.z, 0), fmaxf(x.w + b.w, 0));
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  auto product = require_cublas_lt({.m = p.m, .n = p.n, .k = p.k, .x = p.x, .w = p.w, .y = p.y});
  return [p, product, stream = cuda.stream] {
    product->run(stream);
    add_bias_and_rectify<<<static_cast<unsigned>(p.m), kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::epilogue_fusion::cuda
