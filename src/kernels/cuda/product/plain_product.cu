// Loads, a barrier, arithmetic, a barrier: only the other blocks of a multiprocessor hide the
// waiting.
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/product/plain_product.h"
#include "kernels/cuda/product/plain_tile.cuh"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline product {
namespace {

constexpr int kWarps = 8;  // of a block, a row each
constexpr int kMostGridRows = 65535;

/// The expert of a slot; num_experts for slots that nobody filled. A whole warp asks.
__device__ __forceinline__ int expert_of(const Groups& groups, int slot) {
  int expert = 0;
  for (int first = 0; first < groups.num_experts; first += 32) {
    const int e = first + threadIdx.x % 32;
    const bool ended = e < groups.num_experts && groups.first_slot[e + 1] <= slot;
    expert += __popc(__ballot_sync(0xFFFFFFFF, ended));
  }
  return expert;
}

/// One lane's share of a row: elements one by one, neighbours by neighbouring lanes.
template <WeightFormat kFormat>
__device__ __forceinline__ float dot_lane(const PlainMatrix& matrix, std::int64_t row,
                                          const __nv_bfloat16* x) {
  const int lane = threadIdx.x % 32, cols = static_cast<int>(matrix.cols);
  float sum = 0;
  if constexpr (kFormat == WeightFormat::bf16) {
    const auto* weights = reinterpret_cast<const __nv_bfloat16*>(matrix.data) + row * cols;
#pragma unroll 8
    for (int k = lane; k < cols; k += 32) {
      sum += __bfloat162float(weights[k]) * __bfloat162float(x[k]);
    }
  } else {
    const std::uint8_t* nibbles = matrix.data + row * (cols / 2);
    const std::uint8_t* scales = matrix.scales + row * (cols / 32);
#pragma unroll 8
    for (int k = lane; k < cols / 2; k += 32) {
      const std::uint32_t byte = nibbles[k];
      const float pair = fp4_float(byte) * __bfloat162float(x[2 * k]) +
                         fp4_float(byte >> 4) * __bfloat162float(x[2 * k + 1]);
      sum += pair * e8m0_float(scales[k / 16]);
    }
  }
  return sum;
}

/// Columns are the quick dimension of the grid, so that those of one matrix find its rows in cache.
template <WeightFormat kFormat>
__global__ void __launch_bounds__(kWarps * 32) plain_row_kernel(const PlainProduct p) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int column = blockIdx.x;
  const std::int64_t row = std::int64_t{blockIdx.y} * kWarps + threadIdx.x / 32;
  if (row >= p.weights.rows) return;
  const int expert = expert_of(p.groups, column);
  if (p.groups.num_experts > 0 &&
      (expert == p.groups.num_experts || column < p.groups.first_slot[0])) {
    return;
  }
  const std::int64_t x_row = p.groups.slot_token != nullptr ? p.groups.slot_token[column] : column;
  const std::int64_t matrix_row = expert * p.weights.rows + row;
  const float sum = warp_sum(dot_lane<kFormat>(p.weights, matrix_row, p.x + x_row * p.x_stride));
  if (threadIdx.x % 32 == 0) {
    p.out[column * p.out_stride + row] = sum + (p.bias != nullptr ? p.bias[matrix_row] : 0.0f);
  }
}

/// Blocks by column tile, row tile, expert; a block takes every gridDim.x-th column tile of its
/// expert.
template <PlainUnit kUnit, WeightFormat kFormat, int kColumns>
__global__ void __launch_bounds__(kPlainThreads, kColumns == 16 ? 7 : 4)
    plain_tile_kernel(const PlainProduct p) {
  __shared__ PlainTiles<kColumns> tiles;
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int first_row = blockIdx.y * kPlainRows, expert = blockIdx.z;
  const bool grouped = p.groups.num_experts > 0;
  const int begin = grouped ? p.groups.first_slot[expert] : 0;
  const int end = grouped ? p.groups.first_slot[expert + 1] : static_cast<int>(p.num_columns);
  const std::uint8_t* data = p.weights.data + expert * p.weights.data_bytes();
  const std::uint8_t* scales = p.weights.scales + expert * p.weights.scale_bytes();
  const float* bias = p.bias + expert * p.weights.rows;

  for (int first = begin + blockIdx.x * kColumns; first < end; first += gridDim.x * kColumns) {
    if (threadIdx.x < kColumns) {
      const int column = first + threadIdx.x;
      const bool mapped = column < end && p.groups.slot_token != nullptr;
      tiles.x_rows[threadIdx.x] =
          mapped ? p.groups.slot_token[column] : (column < end ? column : -1);
    }
    __syncthreads();
    PlainSums<kUnit, kColumns> sums;
#pragma unroll 1
    for (int k = 0; k < p.weights.cols; k += kPlainDepth) {
      PlainPart<kFormat> weights;
      PlainInput<kColumns> x;
      weights.load(p.weights, data, scales, first_row, k);
      x.load(p, tiles.x_rows, k);
      weights.store(tiles.weights);
      x.store(tiles.x);
      __syncthreads();
      sums.multiply(tiles);
      __syncthreads();
    }
    sums.each([&](int in_row, int in_column, float sum) {
      const std::int64_t row = first_row + in_row, column = first + in_column;
      if (row >= p.weights.rows || column >= end) return;
      p.out[column * p.out_stride + row] = sum + (p.bias != nullptr ? bias[row] : 0.0f);
    });
  }
}

unsigned tiles_of(std::int64_t count, std::int64_t tile) {
  return static_cast<unsigned>((count + tile - 1) / tile);
}

template <WeightFormat kFormat>
void launch_rows(const PlainProduct& p, const Launch& how) {
  launch(plain_row_kernel<kFormat>,
         {.grid = dim3(static_cast<unsigned>(p.num_columns), tiles_of(p.weights.rows, kWarps)),
          .block = dim3(kWarps * 32)},
         how, p);
}

template <PlainUnit kUnit, WeightFormat kFormat, int kColumns>
void launch_tiles(const PlainProduct& p, const Launch& how) {
  const std::int64_t matrices = std::max(1, p.groups.num_experts);
  launch(plain_tile_kernel<kUnit, kFormat, kColumns>,
         {.grid = dim3(tiles_of(p.num_columns, kColumns * matrices),
                       tiles_of(p.weights.rows, kPlainRows), static_cast<unsigned>(matrices)),
          .block = dim3(kPlainThreads)},
         how, p);
}

template <WeightFormat kFormat>
void launch_format(const PlainProduct& p, PlainUnit unit, PlainColumns columns, const Launch& how) {
  constexpr auto kCuda = PlainUnit::cuda_cores, kTensor = PlainUnit::tensor_cores;
  const bool tensor = unit == kTensor;
  switch (columns) {
    case PlainColumns::one:
      return launch_rows<kFormat>(p, how);
    case PlainColumns::sixteen:
      return tensor ? launch_tiles<kTensor, kFormat, 16>(p, how)
                    : launch_tiles<kCuda, kFormat, 16>(p, how);
    case PlainColumns::sixty_four:
      return tensor ? launch_tiles<kTensor, kFormat, 64>(p, how)
                    : launch_tiles<kCuda, kFormat, 64>(p, how);
  }
}

}  // namespace

void plain_product(const PlainProduct& product, PlainUnit unit, PlainColumns columns,
                   const Launch& how) {
  if (product.num_columns == 0) return;
  const bool mxfp4 = product.weights.format == WeightFormat::mxfp4;
  check(product.weights.cols % (mxfp4 ? 32 : 8) == 0 && product.x_stride % 8 == 0,
        "plain_product: rows are not 16 bytes aligned");
  check(product.weights.rows <= std::int64_t{kMostGridRows} * kWarps,
        "plain_product: more rows than a grid has");
  mxfp4 ? launch_format<WeightFormat::mxfp4>(product, unit, columns, how)
        : launch_format<WeightFormat::bf16>(product, unit, columns, how);
}

}  // namespace gauntlet::kernels::cuda::inline product
