// The same tiles; a warpgroup starts its next products before it adds the scaled last ones to its
// sums, for which it has a second set of registers.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder_fp8/lab.h"
#include "catalog/labs/matmul_ladder_fp8/scaled_tile.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/setmaxnreg.cuh"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::labs::matmul_ladder_fp8::cuda {
namespace {

constexpr int kConsumers = 2;  // warpgroups that multiply; one more loads
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kTileRows = kConsumers * kGroupRows;
constexpr int kTileColumns = 128;
constexpr int kStages = 6;
// 64 sums and two sets of 64 parts do not fit into a third of the registers.
constexpr int kProducerRegisters = 40;
constexpr int kConsumerRegisters = 232;
static_assert(kProducerRegisters + kConsumers * kConsumerRegisters <= 65536 / 128);

struct Stage {
  alignas(1024) F8e4m3 a[kTileRows * kStageDepth];
  alignas(1024) F8e4m3 b[kTileColumns * kStageDepth];
};

struct Ring {
  Stage stages[kStages];
  alignas(16) float a_scales[kStages][kTileRows];
  std::uint64_t full[kStages];   // barriers: a stage and its scales have arrived
  std::uint64_t empty[kStages];  // all who read it are done
};
static_assert(sizeof(Ring) <= 227 * 1024);

__global__ void __launch_bounds__(kThreads, 1)
    multiply(Params p, const __grid_constant__ CUtensorMap a_map,
             const __grid_constant__ CUtensorMap b_map) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto& ring = *reinterpret_cast<Ring*>(ring_bytes);
  const int group = static_cast<int>(threadIdx.x) / 128;
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  const int steps = p.k / kStageDepth;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    // Of the warps that read a stage.
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, 4 * kConsumers);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  RingPlace<kStages> place;
  if (group == kConsumers) {
    ptx::setmaxnreg_decrease<kProducerRegisters>();
    if (threadIdx.x % 128 > 0) return;
    for (int step = 0; step < steps; ++step, place.advance()) {
      Stage& stage = ring.stages[place.stage];
      auto& scales = ring.a_scales[place.stage];
      std::uint64_t& full = ring.full[place.stage];
      // The first time round nobody has to have read the stage.
      wait_for(ring.empty[place.stage], place.parity ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, sizeof(Stage) + sizeof(scales));
      const int k = step * kStageDepth;
      ptx::tensor_load_2d(stage.a, a_map, {.column = k, .row = first_row}, full);
      ptx::tensor_load_2d(stage.b, b_map, {.column = k, .row = first_column}, full);
      ptx::bulk_load(scales, p.a_scales + std::int64_t{step} * p.m + first_row, sizeof(scales),
                     full);
    }
  } else {
    ptx::setmaxnreg_increase<kConsumerRegisters>();
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
    const float* b_scales = p.b_scales + std::int64_t{blockIdx.y} * steps;
    float sums[64] = {};
    float parts[2][64];
    RowScales scales[2];
    int before = 0;  // the stage of the products that run
    const auto start = [&](float(&to)[64], RowScales& of_to, int step) {
      const float b_scale = b_scales[step];
      wait_for(ring.full[place.stage], place.parity);
      const Stage& stage = ring.stages[place.stage];
      const float(&a_scales)[kTileRows] = ring.a_scales[place.stage];
      of_to = {.upper = a_scales[row] * b_scale, .lower = a_scales[row + 8] * b_scale};
      ptx::wgmma_fence();
      start_product(to, stage.a + group * kGroupRows * kStageDepth, stage.b);
      ptx::wgmma_commit_group();
    };
    const auto release = [&] {
      if (lane == 0) ptx::mbarrier_arrive(ring.empty[before]);
      before = place.stage;
      place.advance();
    };
    /// Products of `step` into one set of registers while those of the step before, in the other,
    /// are added.
    const auto turn = [&]<int kInto>(int step) {
      start(parts[kInto], scales[kInto], step);
      ptx::wgmma_wait_group<1>();
      release();
      add_scaled(sums, parts[1 - kInto], scales[1 - kInto]);
    };
    start(parts[0], scales[0], 0);
    before = place.stage;
    place.advance();
    int step = 1;
    for (; step + 1 < steps; step += 2) {
      turn.template operator()<1>(step);
      turn.template operator()<0>(step + 1);
    }
    if (step < steps) {
      turn.template operator()<1>(step);
      ptx::wgmma_wait_group<0>();
      add_scaled(sums, parts[1], scales[1]);
    } else {
      ptx::wgmma_wait_group<0>();
      add_scaled(sums, parts[0], scales[0]);
    }
    Bf16* c = p.c + std::int64_t{first_row + group * kGroupRows} * p.n + first_column;
    matmul_ladder::cuda::store_sums(sums, c, p.n);
  }
}

}  // namespace

lab::Side overlapped(const Params& p, const lab::Cuda& cuda) {
  CUtensorMap a_map, b_map;
  describe_operand(p.a, p.m, p.k, kTileRows, a_map);
  describe_operand(p.b, p.n, p.k, kTileColumns, b_map);
  cuda_check(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, stream = cuda.stream] {
    multiply<<<dim3(p.m / kTileRows, p.n / kTileColumns), kThreads, sizeof(Ring), stream>>>(
        p, a_map, b_map);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::labs::matmul_ladder_fp8::cuda
