// Reads along rows, writes down columns: the lanes of a store are one output row apart, so it
// touches 32 sectors.
#include <cuda_runtime.h>

#include "catalog/ch07/transpose_padded/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::transpose_padded::cuda {
namespace {

constexpr int kTile = 32;  // a block transposes kTile x kTile elements
constexpr int kBlockRows = 8;
constexpr int kThreads = kTile * kBlockRows;
constexpr int kPerThread = kTile / kBlockRows;
static_assert(kTile % kBlockRows == 0);

__global__ void __launch_bounds__(kThreads) transpose(Params p) {
  const std::int64_t tile_row = std::int64_t{blockIdx.y} * kTile;
  const std::int64_t tile_column = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t column = tile_column + threadIdx.x;

  float values[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t row = tile_row + threadIdx.y + i * kBlockRows;
    if (row < p.rows && column < p.columns) values[i] = p.in[row * p.columns + column];
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t row = tile_row + threadIdx.y + i * kBlockRows;
    if (row < p.rows && column < p.columns) p.out[column * p.rows + row] = values[i];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const dim3 blocks(static_cast<unsigned>((p.columns + kTile - 1) / kTile),
                      static_cast<unsigned>((p.rows + kTile - 1) / kTile));
    transpose<<<blocks, dim3(kTile, kBlockRows), 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::transpose_padded::cuda
