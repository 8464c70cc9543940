// A tile without padding whose columns are exchanged by row: row r keeps column c at c XOR r, so
// the words of a column lie in different banks, and so do those of a row.
#include <cuda_runtime.h>

#include "catalog/ch07/transpose_swizzled/pair.h"
#include "catalog/ch07/transpose_swizzled/tile.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::transpose_swizzled::cuda {
namespace {

constexpr int kTileWords = kTileRows * kTileColumns;

constexpr int slot(int row, int column) {
  return row * kTileColumns + (column ^ (row % kTileColumns));
}
static_assert(conflict_free(slot));

__global__ void __launch_bounds__(kThreads) transpose(Params p) {
  __shared__ float tile[kTileWords];
  const std::int64_t tile_row = std::int64_t{blockIdx.y} * kTileRows;
  const std::int64_t tile_column = std::int64_t{blockIdx.x} * kTileColumns;
  const int line = threadIdx.x / kVectorsPerRow;
  const int vector = threadIdx.x % kVectorsPerRow;

  float4 values[kPerThread];
  const std::int64_t column = tile_column + vector * kVector;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t row = tile_row + line + i * kRowsPerStep;
    if (row < p.rows && column < p.columns) {
      values[i] = *reinterpret_cast<const float4*>(p.in + row * p.columns + column);
    }
  }
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int row = line + i * kRowsPerStep;
    tile[slot(row, vector * kVector + 0)] = values[i].x;
    tile[slot(row, vector * kVector + 1)] = values[i].y;
    tile[slot(row, vector * kVector + 2)] = values[i].z;
    tile[slot(row, vector * kVector + 3)] = values[i].w;
  }
  __syncthreads();

#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int row = (vector + i * kVectorsPerRow) * kVector;
    values[i].x = tile[slot(row + 0, line)];
    values[i].y = tile[slot(row + 1, line)];
    values[i].z = tile[slot(row + 2, line)];
    values[i].w = tile[slot(row + 3, line)];
  }
  const std::int64_t out_row = tile_column + line;
  auto* out = reinterpret_cast<float4*>(p.out + out_row * p.rows + tile_row) + vector;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const std::int64_t out_column = tile_row + (vector + i * kVectorsPerRow) * kVector;
    if (out_row < p.columns && out_column < p.rows) out[i * kVectorsPerRow] = values[i];
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  cudaFuncAttributes kernel;
  cuda_check(cudaFuncGetAttributes(&kernel, transpose));
  return lab::Side(
      [p, stream = cuda.stream] {
        const dim3 blocks(static_cast<unsigned>((p.columns + kTileColumns - 1) / kTileColumns),
                          static_cast<unsigned>((p.rows + kTileRows - 1) / kTileRows));
        transpose<<<blocks, kThreads, 0, stream>>>(p);
        cuda_check(cudaGetLastError());
      },
      {{"shared_bytes", static_cast<double>(kernel.sharedSizeBytes)}});
}

}  // namespace gauntlet::ch07::transpose_swizzled::cuda
