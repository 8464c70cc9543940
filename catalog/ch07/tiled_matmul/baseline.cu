// One thread per element of C, neighbouring lanes in neighbouring columns, both operands read where
// they lie.
#include <cuda_runtime.h>

#include "catalog/ch07/tiled_matmul/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::tiled_matmul::cuda {
namespace {

constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile* kTile) multiply(Params p) {
  const int row = static_cast<int>(blockIdx.y) * kTile + static_cast<int>(threadIdx.y);
  const int column = static_cast<int>(blockIdx.x) * kTile + static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int first = 0; first < p.k; first += kTile) {
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      sum += p.a[row * p.k + first + i] * p.b[(first + i) * p.n + column];
    }
  }
  p.c[row * p.n + column] = sum;
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const dim3 blocks(p.n / kTile, p.m / kTile);
    multiply<<<blocks, dim3(kTile, kTile), 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::tiled_matmul::cuda
