// The same tiles, moved by two tensor maps: one instruction loads a tile with its halo and zeros
// outside the matrix, one stores a tile and drops what lies outside.
#include <cuda_runtime.h>

#include "catalog/ch07/tma_tile_2d/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/tensor_map.h"
#include "lab/author/side.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"

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
static_assert(kTileRows % kWarps == 0);

struct Tiles {
  alignas(128) float in[kBoxRows][kBoxColumns];
  alignas(128) float out[kTileRows][kTileColumns];
  std::uint64_t full;  // barrier: `in` has arrived
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

__global__ void __launch_bounds__(kThreads)
    apply_laplacian(const __grid_constant__ CUtensorMap in_map,
                    const __grid_constant__ CUtensorMap out_map) {
  __shared__ Tiles tiles;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row = static_cast<int>(blockIdx.y) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.x) * kTileColumns;

  if (threadIdx.x == 0) {
    ptx::mbarrier_init(tiles.full, 1);
    ptx::fence_mbarrier_init();
    ptx::mbarrier_arrive_expect_tx(tiles.full, sizeof(tiles.in));
    ptx::tensor_load_2d(tiles.in, in_map, {.column = first_column - kHalo, .row = first_row - 1},
                        tiles.full);
  }
  __syncthreads();  // nobody waits on a barrier that is not initialised
  while (!ptx::mbarrier_try_wait(tiles.full, 0)) {
  }

#pragma unroll
  for (int i = 0; i < kRowsPerWarp; ++i) {
    const int y = warp * kRowsPerWarp + i;
    const float4 values = laplacian(tiles.in, y + 1, kHalo + 4 * lane);
    *reinterpret_cast<float4*>(&tiles.out[y][4 * lane]) = values;
  }
  ptx::fence_proxy_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::tensor_store_2d(out_map, {.column = first_column, .row = first_row}, tiles.out);
    ptx::bulk_commit_group();
    ptx::bulk_wait_group_read<0>();  // shared memory must outlive the store that reads it
  }
}

CUtensorMap map_of(const Params& p, const float* matrix, int box_rows, int box_columns) {
  CUtensorMap map;
  const auto encoded = encode_tensor_map({.address = matrix,
                                          .type = DType::f32,
                                          .rows = p.rows,
                                          .columns = p.columns,
                                          .box_rows = box_rows,
                                          .box_columns = box_columns},
                                         map);
  if (!encoded) fail(encoded.error().message);
  return map;
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const CUtensorMap in_map = map_of(p, p.in, kBoxRows, kBoxColumns);
  const CUtensorMap out_map = map_of(p, p.out, kTileRows, kTileColumns);
  return [p, in_map, out_map, stream = cuda.stream] {
    const dim3 blocks(static_cast<unsigned>((p.columns + kTileColumns - 1) / kTileColumns),
                      static_cast<unsigned>((p.rows + kTileRows - 1) / kTileRows));
    apply_laplacian<<<blocks, kThreads, 0, stream>>>(in_map, out_map);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::tma_tile_2d::cuda
