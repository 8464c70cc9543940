// Blocks that stay, on tiles of 128 x 256: rows of A go through registers once for all columns, and
// of the columns 64 at a time are multiplied while 64 others are scaled and added.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "catalog/labs/matmul_ladder/tile_maps.h"
#include "catalog/labs/matmul_ladder/tile_order.h"
#include "catalog/labs/matmul_ladder_fp8/lab.h"
#include "catalog/labs/matmul_ladder_fp8/scaled_tile.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/wgmma_register_a_f8.cuh"

namespace gauntlet::labs::matmul_ladder_fp8::cuda {
namespace {

constexpr int kConsumers = 2;  // warpgroups that multiply; one more loads
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kTileRows = kConsumers * kGroupRows;
constexpr int kTileColumns = 256;
constexpr int kPart = 64;                 // columns that are multiplied at once
constexpr int kSteps = kStageDepth / 32;  // of K per product
constexpr int kStages = 4;
// 128 sums, 64 parts and 16 of A do not fit into a third of the registers.
constexpr int kProducerRegisters = 40;
constexpr int kConsumerRegisters = 232;
static_assert(kProducerRegisters + kConsumers * kConsumerRegisters <= 65536 / 128);

struct Stage {
  alignas(1024) F8e4m3 a[kTileRows * kStageDepth];
  alignas(1024) F8e4m3 b[kTileColumns * kStageDepth];
};

struct Ring {
  Stage stages[kStages];
  alignas(1024) unsigned char boxes[4 * kConsumers][kBoxes][kBoxBytes];
  alignas(16) float a_scales[kStages][kTileRows];
  std::uint64_t full[kStages];   // barriers: a stage and its scales have arrived
  std::uint64_t empty[kStages];  // all who read it are done
};
static_assert(sizeof(Ring) <= 227 * 1024);

using RowsOfA = std::uint32_t[kSteps][4];

/// A warp's 16 rows of a stage.
__device__ __forceinline__ void load_rows(RowsOfA& rows, const F8e4m3* a) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t from = ptx::shared_address(a + lane % 16 * kStageDepth);
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    ptx::ldmatrix_x4(rows[i], from + ((2 * i + lane / 16) ^ (lane % 8)) * 16);
  }
}

/// parts = the rows by 64 columns of a stage; does not wait.
__device__ __forceinline__ void start_part(float (&parts)[kPart / 2], const RowsOfA& rows,
                                           std::uint64_t b) {
  ptx::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kSteps; ++i) {
    ptx::wgmma_m64n64k32_f8e4m3(parts, rows[i], b + 2 * i, i > 0);
  }
  ptx::wgmma_commit_group();
}

/// The sums of columns kFirst to kFirst + 64.
template <int kFirst>
__device__ __forceinline__ void add_part(float (&sums)[kTileColumns / 2],
                                         const float (&parts)[kPart / 2], RowScales scales) {
#pragma unroll
  for (int i = 0; i < kPart / 2; i += 4) {
    float* s = sums + kFirst / 2 + i;
    s[0] += scales.upper * parts[i];
    s[1] += scales.upper * parts[i + 1];
    s[2] += scales.lower * parts[i + 2];
    s[3] += scales.lower * parts[i + 3];
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    multiply(Params p, const __grid_constant__ CUtensorMap a_map,
             const __grid_constant__ CUtensorMap b_map, const __grid_constant__ CUtensorMap c_map) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto& ring = *reinterpret_cast<Ring*>(ring_bytes);
  const int warp = static_cast<int>(threadIdx.x) / 32, group = warp / 4;
  const int row_tiles = p.m / kTileRows, column_tiles = p.n / kTileColumns;
  const int tiles = row_tiles * column_tiles, steps = p.k / kStageDepth;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    // Of the warps that read a stage.
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, 4 * kConsumers);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  const auto origin_of = [&](int tile) {
    const auto at = matmul_ladder::tile_in_groups(tile, row_tiles, column_tiles);
    return ptx::TileOrigin{.column = at.column * kTileColumns, .row = at.row * kTileRows};
  };
  const auto first_tile = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  RingPlace<kStages> place;
  if (group == kConsumers) {
    ptx::setmaxnreg_decrease<kProducerRegisters>();
    if (threadIdx.x % 128 > 0) return;
    for (int tile = first_tile; tile < tiles; tile += blocks) {
      const ptx::TileOrigin at = origin_of(tile);
      for (int step = 0; step < steps; ++step, place.advance()) {
        Stage& stage = ring.stages[place.stage];
        auto& scales = ring.a_scales[place.stage];
        std::uint64_t& full = ring.full[place.stage];
        // The first time round nobody has to have read the stage.
        wait_for(ring.empty[place.stage], place.parity ^ 1);
        ptx::mbarrier_arrive_expect_tx(full, sizeof(Stage) + sizeof(scales));
        const int k = step * kStageDepth;
        ptx::tensor_load_2d(stage.a, a_map, {.column = k, .row = at.row}, full);
        ptx::tensor_load_2d(stage.b, b_map, {.column = k, .row = at.column}, full);
        ptx::bulk_load(scales, p.a_scales + std::int64_t{step} * p.m + at.row, sizeof(scales),
                       full);
      }
    }
  } else {
    ptx::setmaxnreg_increase<kConsumerRegisters>();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int tile = first_tile; tile < tiles; tile += blocks) {
      const ptx::TileOrigin at = origin_of(tile);
      const float* b_scales = p.b_scales + std::int64_t{at.column / kScaled} * steps;
      float sums[kTileColumns / 2] = {};
      float next_left = b_scales[0], next_right = b_scales[steps];
      for (int step = 0; step < steps; ++step, place.advance()) {
        const float of_left = next_left, of_right = next_right;
        const int ahead = min(step + 1, steps - 1);
        next_left = b_scales[ahead];
        next_right = b_scales[steps + ahead];
        wait_for(ring.full[place.stage], place.parity);
        const Stage& stage = ring.stages[place.stage];
        const float* a_scales = ring.a_scales[place.stage] + warp * 16 + lane / 4;
        const float upper = a_scales[0], lower = a_scales[8];
        const RowScales left{.upper = upper * of_left, .lower = lower * of_left};
        const RowScales right{.upper = upper * of_right, .lower = lower * of_right};
        RowsOfA rows;
        load_rows(rows, stage.a + warp * 16 * kStageDepth);
        const std::uint64_t b = ptx::wgmma_descriptor_128b(stage.b);
        constexpr int kNext = kPart * kStageDepth / 16;  // to the next 64 columns
        float even[kPart / 2], odd[kPart / 2];
        start_part(even, rows, b);
        start_part(odd, rows, b + kNext);
        ptx::wgmma_wait_group<1>();
        add_part<0>(sums, even, left);
        start_part(even, rows, b + 2 * kNext);
        ptx::wgmma_wait_group<1>();
        add_part<kPart>(sums, odd, left);
        start_part(odd, rows, b + 3 * kNext);
        ptx::wgmma_wait_group<1>();
        add_part<2 * kPart>(sums, even, right);
        ptx::wgmma_wait_group<0>();
        if (lane == 0) ptx::mbarrier_arrive(ring.empty[place.stage]);
        add_part<3 * kPart>(sums, odd, right);
      }
      store_by_copies(sums, ring.boxes[warp], c_map,
                      {.column = at.column, .row = at.row + warp * kBoxRows});
    }
    if (lane == 0) ptx::bulk_wait_group_read<0>();
  }
}

}  // namespace

lab::Side persistent(const Params& p, const lab::Cuda& cuda) {
  CUtensorMap a_map, b_map, c_map;
  describe_operand(p.a, p.m, p.k, kTileRows, a_map);
  describe_operand(p.b, p.n, p.k, kTileColumns, b_map);
  matmul_ladder::cuda::describe(p.c, p.m, p.n, kBoxRows, c_map);
  const int tiles = p.m / kTileRows * (p.n / kTileColumns);
  const auto blocks = static_cast<unsigned>(std::min(cuda.num_sms, tiles));
  cuda_check(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, c_map, blocks, stream = cuda.stream] {
    multiply<<<blocks, kThreads, sizeof(Ring), stream>>>(p, a_map, b_map, c_map);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::labs::matmul_ladder_fp8::cuda
