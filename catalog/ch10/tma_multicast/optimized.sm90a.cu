// Clusters of two blocks with the same columns: each asks for half of a tile of B, for both.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/ch10/tma_multicast/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/tensor_map.h"
#include "lab/author/side.h"
#include "ptx/cluster.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/multicast.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/wgmma.cuh"

namespace gauntlet::ch10::tma_multicast::cuda {
namespace {

constexpr int kConsumers = 2;  // warpgroups that multiply; one more loads
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kTileRows = 128;
constexpr int kTileColumns = 256;
constexpr int kDepth = 32;      // 128 bytes, a row of the swizzle
constexpr int kStep = 8;        // of K per wgmma
constexpr int kGroupRows = 64;  // of a warpgroup
constexpr int kStages = 4;
// Blocks of a cluster: two tiles of C side by side in x share their columns.
constexpr int kShareB = 2;
static_assert(kTileRows == kConsumers * kGroupRows);

struct Stage {
  alignas(1024) float a[kTileRows * kDepth];
  alignas(1024) float b[kTileColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
  std::uint64_t full[kStages];   // barriers: a stage has arrived
  std::uint64_t empty[kStages];  // all who read it, in any block that this one writes to, are done
};
static_assert(sizeof(Ring) <= 227 * 1024);

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

__device__ __forceinline__ void wait_for_cluster(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_cluster(barrier, parity)) {
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
  const int x = static_cast<int>(ptx::cluster_rank());
  constexpr std::uint16_t sharing_b = 0b11;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, 2 * 4 * kConsumers);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  ptx::cluster_arrive();  // nobody writes to a block whose barriers are not there
  ptx::cluster_wait();

  if (group == kConsumers) {
    for (int step = 0; threadIdx.x % 128 == 0 && step < steps; ++step) {
      Stage& stage = ring.stages[step % kStages];
      std::uint64_t& full = ring.full[step % kStages];
      // The first time round nobody has to have read the stage.
      wait_for_cluster(ring.empty[step % kStages], step / kStages % 2 ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, sizeof(stage.a) + sizeof(stage.b));
      // Each block fetches its part of what it shares, for all who share it.
      const int part_b = kTileColumns / kShareB * x;
      ptx::tensor_load_2d(stage.a, a_map, {.column = step * kDepth, .row = first_row}, full);
      ptx::tensor_load_2d_multicast(stage.b + part_b * kDepth, b_map,
                                    {.column = step * kDepth, .row = first_column + part_b}, full,
                                    sharing_b);
    }
  } else {
    const auto release = [&](int step) {
      // Both blocks of the cluster write into this stage.
      if (threadIdx.x % 32 < kShareB) {
        ptx::mbarrier_arrive_at(ring.empty[step % kStages], threadIdx.x % 32);
      }
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
  __syncwarp();
  ptx::cluster_arrive();  // a block's shared memory must outlive what others write to it
  ptx::cluster_wait();
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
  describe(p.b, p.n, p.k, kTileColumns / kShareB, b_map);
  cuda_check(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, stream = cuda.stream] {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {.x = 2, .y = 1, .z = 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(p.m / kTileRows, p.n / kTileColumns);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = sizeof(Ring);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&config, product, p, a_map, b_map));
  };
}

}  // namespace gauntlet::ch10::tma_multicast::cuda
