// One thread per element of C; the block brings tiles of 32 x 32 of both operands into shared
// memory, where 32 threads read each word.
#include <cuda_runtime.h>

#include "catalog/ch09/register_tiling/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::register_tiling::cuda {
namespace {

constexpr int kTile = 32;

struct Tiles {
  float a[kTile][kTile];
  float b[kTile][kTile];
};

__global__ void __launch_bounds__(kTile* kTile) multiply(Params p) {
  __shared__ Tiles tiles;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + y;
  const int column = static_cast<int>(blockIdx.x) * kTile + x;
  float sum = 0;
  for (int first = 0; first < p.k; first += kTile) {
    tiles.a[y][x] = p.a[row * p.k + first + x];
    tiles.b[y][x] = p.b[(first + y) * p.n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += tiles.a[y][i] * tiles.b[i][x];
    __syncthreads();
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

}  // namespace gauntlet::ch09::register_tiling::cuda
