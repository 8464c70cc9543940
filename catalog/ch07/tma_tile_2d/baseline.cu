// Threads compute their own addresses and bounds, stage a tile and its halo in shared memory with
// 16-byte loads, and store 16 bytes each.
#include <cuda_runtime.h>

#include "catalog/ch07/tma_tile_2d/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::tma_tile_2d::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kTileRows = 32;
constexpr int kTileColumns = 128;
constexpr int kRowsPerWarp = kTileRows / kWarps;
constexpr int kBoxRows = kTileRows + 2;
// One column of halo on either side is used; four keep the rows 16-byte aligned.
constexpr int kHalo = 4;
constexpr int kBoxColumns = kTileColumns + 2 * kHalo;
static_assert(kTileColumns == 32 * 4, "a warp covers a row with 16 bytes per lane");
static_assert(kTileRows % kWarps == 0 && 2 * kBoxRows <= kThreads);

struct Tile {
  alignas(16) float in[kBoxRows][kBoxColumns];
};

/// Four outputs next to each other; (row, column) is their place in the box.
__device__ float4 laplacian(const float (&in)[kBoxRows][kBoxColumns], int row, int column) {
  const auto load = [&](int y) { return *reinterpret_cast<const float4*>(&in[y][column]); };
  const float4 up = load(row - 1), here = load(row), down = load(row + 1);
  const float left = in[row][column - 1], right = in[row][column + 4];
  return make_float4(
      4 * here.x - up.x - down.x - left - here.y, 4 * here.y - up.y - down.y - here.x - here.z,
      4 * here.z - up.z - down.z - here.y - here.w, 4 * here.w - up.w - down.w - here.z - right);
}

__global__ void __launch_bounds__(kThreads) apply_laplacian(Params p) {
  __shared__ Tile tile;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first_row = std::int64_t{blockIdx.y} * kTileRows;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * kTileColumns;
  const std::int64_t column = first_column + 4 * lane;

#pragma unroll
  for (int y = warp; y < kBoxRows; y += kWarps) {
    const std::int64_t row = first_row + y - 1;
    float4 values{};
    if (row >= 0 && row < p.rows && column < p.columns) {
      values = *reinterpret_cast<const float4*>(p.in + row * p.columns + column);
    }
    *reinterpret_cast<float4*>(&tile.in[y][kHalo + 4 * lane]) = values;
  }
  if (threadIdx.x < 2 * kBoxRows) {
    const int y = static_cast<int>(threadIdx.x) / 2, side = static_cast<int>(threadIdx.x) % 2;
    const std::int64_t row = first_row + y - 1;
    const std::int64_t edge = side == 0 ? first_column - 1 : first_column + kTileColumns;
    const bool inside = row >= 0 && row < p.rows && edge >= 0 && edge < p.columns;
    tile.in[y][side == 0 ? kHalo - 1 : kHalo + kTileColumns] =
        inside ? p.in[row * p.columns + edge] : 0.0f;
  }
  __syncthreads();

#pragma unroll
  for (int i = 0; i < kRowsPerWarp; ++i) {
    const int y = warp * kRowsPerWarp + i;
    const float4 values = laplacian(tile.in, y + 1, kHalo + 4 * lane);
    if (first_row + y < p.rows && column < p.columns) {
      *reinterpret_cast<float4*>(p.out + (first_row + y) * p.columns + column) = values;
    }
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const dim3 blocks(static_cast<unsigned>((p.columns + kTileColumns - 1) / kTileColumns),
                      static_cast<unsigned>((p.rows + kTileRows - 1) / kTileRows));
    apply_laplacian<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::tma_tile_2d::cuda
