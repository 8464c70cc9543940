// Roles: one warp asks for tiles, two warpgroups multiply them, and they meet at two barriers per
// stage and nowhere else.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/ch10/warp_specialization/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/tensor_map.h"
#include "lab/author/side.h"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/wgmma.cuh"

namespace gauntlet::ch10::warp_specialization::cuda {
namespace {

constexpr int kConsumers = 2;  // warpgroups that multiply; one more loads
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kTileRows = 128;
constexpr int kTileColumns = 256;
constexpr int kDepth = 32;      // 128 bytes, a row of the swizzle
constexpr int kStep = 8;        // of K per wgmma
constexpr int kGroupRows = 64;  // of a warpgroup
constexpr int kStages = 4;
static_assert(kTileRows == kConsumers * kGroupRows);

struct Stage {
  alignas(1024) float a[kTileRows * kDepth];
  alignas(1024) float b[kTileColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
  std::uint64_t full[kStages];   // barriers: a stage has arrived
  std::uint64_t empty[kStages];  // all who read it are done
};
static_assert(sizeof(Ring) <= 227 * 1024);

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

/// sums += a warpgroup's 64 rows of a stage by its 256 columns; does not wait.
__device__ __forceinline__ void start_product(float (&sums)[128], const float* a, const float* b,
                                              bool add) {
  const std::uint64_t of_a = ptx::wgmma_descriptor_128b(a);
  const std::uint64_t of_b = ptx::wgmma_descriptor_128b(b);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kDepth / kStep; ++step) {
    // 32 bytes further along K are two units of the descriptor.
    ptx::wgmma_m64n256k8_tf32(sums, of_a + 2 * step, of_b + 2 * step, add || step > 0);
  }
  ptx::wgmma_commit_group();
}

/// A lane's sums: rows lane / 4 and 8 further of its warp's 16, two columns of every eight.
__device__ __forceinline__ void store_sums(const float (&sums)[128], float* c, int pitch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  float* upper = c + std::int64_t{warp * 16 + lane / 4} * pitch + lane % 4 * 2;
  float* lower = upper + std::int64_t{8} * pitch;
#pragma unroll
  for (int j = 0; j < kTileColumns / 8; ++j) {
    *reinterpret_cast<float2*>(upper + 8 * j) = make_float2(sums[4 * j], sums[4 * j + 1]);
    *reinterpret_cast<float2*>(lower + 8 * j) = make_float2(sums[4 * j + 2], sums[4 * j + 3]);
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    product(Params p, const __grid_constant__ CUtensorMap a_map,
            const __grid_constant__ CUtensorMap b_map) {
  extern __shared__ __align__(1024) unsigned char ring_bytes[];
  auto& ring = *reinterpret_cast<Ring*>(ring_bytes);
  const int group = static_cast<int>(threadIdx.x) / 128;
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  const int steps = p.k / kDepth;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, 4 * kConsumers);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  if (group == kConsumers) {
    if (threadIdx.x % 128 > 0) return;
    for (int step = 0; step < steps; ++step) {
      Stage& stage = ring.stages[step % kStages];
      std::uint64_t& full = ring.full[step % kStages];
      // The first time round nobody has to have read the stage.
      wait_for(ring.empty[step % kStages], step / kStages % 2 ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, sizeof(stage.a) + sizeof(stage.b));
      ptx::tensor_load_2d(stage.a, a_map, {.column = step * kDepth, .row = first_row}, full);
      ptx::tensor_load_2d(stage.b, b_map, {.column = step * kDepth, .row = first_column}, full);
    }
  } else {
    const auto release = [&](int step) {
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(ring.empty[step % kStages]);
    };
    float sums[128];
    for (int step = 0; step < steps; ++step) {
      wait_for(ring.full[step % kStages], step / kStages % 2);
      const Stage& stage = ring.stages[step % kStages];
      start_product(sums, stage.a + group * kGroupRows * kDepth, stage.b, step > 0);
      ptx::wgmma_wait_group<1>();  // the products of the step before are done
      if (step > 0) release(step - 1);
    }
    ptx::wgmma_wait_group<0>();
    store_sums(sums, p.c + std::int64_t{first_row + group * kGroupRows} * p.n + first_column, p.n);
  }
}

/// Boxes of box_rows x kDepth words in the swizzle that wgmma reads.
void describe(const float* matrix, std::int64_t rows, std::int64_t columns, int box_rows,
              CUtensorMap& map) {
  const auto encoded = encode_tensor_map({.address = matrix,
                                          .type = DType::f32,
                                          .rows = rows,
                                          .columns = columns,
                                          .box_rows = box_rows,
                                          .box_columns = kDepth,
                                          .swizzle = TileSwizzle::bytes_128},
                                         map);
  if (!encoded) fail(encoded.error().message);
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  CUtensorMap a_map, b_map;
  describe(p.a, p.m, p.k, kTileRows, a_map);
  describe(p.b, p.n, p.k, kTileColumns, b_map);
  cuda_check(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, stream = cuda.stream] {
    product<<<dim3(p.m / kTileRows, p.n / kTileColumns), kThreads, sizeof(Ring), stream>>>(p, a_map,
                                                                                           b_map);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::warp_specialization::cuda
