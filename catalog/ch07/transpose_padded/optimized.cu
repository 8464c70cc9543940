// Reads along rows into a tile, turns the tile in shared memory, writes along rows of the output.
// With 33 words per row the words of a column lie in 32 different banks.
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
  __shared__ float tile[kTile][kTile + 1];
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
  for (int i = 0; i < kPerThread; ++i) tile[threadIdx.y + i * kBlockRows][threadIdx.x] = values[i];
  __syncthreads();

  const std::int64_t out_column = tile_row + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int turned = threadIdx.y + i * kBlockRows;
    const std::int64_t out_row = tile_column + turned;
    if (out_row < p.columns && out_column < p.rows) {
      p.out[out_row * p.rows + out_column] = tile[threadIdx.x][turned];
    }
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const dim3 blocks(static_cast<unsigned>((p.columns + kTile - 1) / kTile),
                      static_cast<unsigned>((p.rows + kTile - 1) / kTile));
    transpose<<<blocks, dim3(kTile, kBlockRows), 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::transpose_padded::cuda
