// Windows of other processes are read as memory: whoever launches these has met their owners on the
// stream before.
#include <algorithm>

#include "core/check.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rows/peer_rows.h"

namespace gauntlet::kernels::cuda::inline rows {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 1024;

unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + kThreads - 1) / kThreads, 1, kMostBlocks));
}

__global__ void __launch_bounds__(kThreads)
    add_parts_kernel(const __grid_constant__ AddParts work) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < work.count / 4;
       i += step) {
    float4 sum = reinterpret_cast<const float4*>(work.parts[0])[i];
    for (int r = 1; r < work.num_ranks; ++r) {
      const float4 add = reinterpret_cast<const float4*>(work.parts[r])[i];
      sum.x += add.x, sum.y += add.y, sum.z += add.z, sum.w += add.w;
    }
    reinterpret_cast<float4*>(work.out)[i] = sum;
  }
}

/// A row of blocks to each row.
__global__ void __launch_bounds__(kThreads)
    take_columns_kernel(const __grid_constant__ TakeColumns work) {
  const std::int64_t row = blockIdx.y;
  const float* from = work.x + row * work.stride + work.part.first;
  float* to = work.part.values + row * work.part.width;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; c < work.part.width;
       c += step) {
    to[c] = from[c];
  }
}

/// A row of blocks to each row, a layer of them to each part.
__global__ void __launch_bounds__(kThreads)
    put_columns_kernel(const __grid_constant__ PutColumns work) {
  const ColumnPart& part = work.parts[blockIdx.z];
  const std::int64_t row = blockIdx.y;
  const float* from = part.values + row * part.width;
  float* to = work.x + row * work.stride + part.first;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; c < part.width;
       c += step) {
    to[c] = from[c];
  }
}

/// Few rows are taken by many blocks each, many rows by few.
unsigned blocks_per_row(std::int64_t width, std::int64_t num_rows) {
  const std::int64_t most = std::max<std::int64_t>(1, kMostBlocks / num_rows);
  return static_cast<unsigned>(std::min<std::int64_t>(blocks_for(width), most));
}

}  // namespace

void add_parts(const AddParts& work, const Launch& how) {
  check(work.num_ranks >= 1 && work.num_ranks <= kMostPeers, "as many ranks as there is room for");
  check(work.count % 4 == 0, "a sum is of whole groups of four");
  if (work.count == 0) return;
  launch(add_parts_kernel, {.grid = blocks_for(work.count / 4), .block = kThreads}, how, work);
}

void take_columns(const TakeColumns& work, const Launch& how) {
  if (work.num_rows == 0 || work.part.width == 0) return;
  const dim3 grid(blocks_per_row(work.part.width, work.num_rows),
                  static_cast<unsigned>(work.num_rows));
  launch(take_columns_kernel, {.grid = grid, .block = kThreads}, how, work);
}

void put_columns(const PutColumns& work, const Launch& how) {
  check(work.num_parts <= kMostPeers, "as many ranks as there is room for");
  std::int64_t widest = 0;
  for (int p = 0; p < work.num_parts; ++p) widest = std::max(widest, work.parts[p].width);
  if (work.num_rows == 0 || widest == 0) return;
  const dim3 grid(blocks_per_row(widest, work.num_rows), static_cast<unsigned>(work.num_rows),
                  static_cast<unsigned>(work.num_parts));
  launch(put_columns_kernel, {.grid = grid, .block = kThreads}, how, work);
}

}  // namespace gauntlet::kernels::cuda::inline rows
