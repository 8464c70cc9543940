// One SM by itself: its tensor cores read tiles of 128 x 32 and 256 x 32 from its shared memory and
// keep 128 x 256 sums in its tensor memory.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/ch10/tcgen05_matmul/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/tensor_map.h"
#include "lab/author/side.h"
#include "ptx/dynamic_shared.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tcgen05.cuh"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::ch10::tcgen05_matmul::cuda {
namespace {

constexpr int kSms = 1;
constexpr int kThreads = 128;   // a row of sums each; two of them also load and multiply
constexpr int kTileRows = 128;  // of a block
constexpr int kTileColumns = 256;
constexpr int kPartColumns = kTileColumns / kSms;  // of B, per block
constexpr int kDepth = 32;                         // 128 bytes, a row of the swizzle
constexpr int kStep = 8;                           // of K per product
constexpr int kStages = 4;

struct Stage {
  alignas(1024) float a[kTileRows * kDepth];
  alignas(1024) float b[kPartColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
  std::uint64_t full[kStages];   // barriers: a stage has arrived
  std::uint64_t empty[kStages];  // its products are done
  std::uint64_t done;            // all products are done
  std::uint32_t sums;            // address of 256 columns of tensor memory
};
static_assert(sizeof(Ring) <= 227 * 1024);

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    product(Params p, const __grid_constant__ CUtensorMap a_map,
            const __grid_constant__ CUtensorMap b_map) {
  auto& ring = ptx::dynamic_shared<Ring>();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int first_row = static_cast<int>(blockIdx.x) * kTileRows;
  const int first_column = static_cast<int>(blockIdx.y) * kTileColumns;
  const int steps = p.k / kDepth;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, 1);
    ptx::mbarrier_init(ring.done, 1);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  if (warp == 0) ptx::tensor_memory_allocate<kSms>(&ring.sums, kTileColumns);
  ptx::tcgen05_fence_before_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_sync();
  const std::uint32_t sums = ring.sums;

  if (warp == 0 && lane == 0) {
    for (int step = 0; step < steps; ++step) {
      Stage& stage = ring.stages[step % kStages];
      std::uint64_t& full = ring.full[step % kStages];
      // The first time round no product has to have read the stage.
      wait_for(ring.empty[step % kStages], step / kStages % 2 ^ 1);
      ptx::mbarrier_arrive_expect_tx(full, sizeof(stage.a) + sizeof(stage.b));
      ptx::tensor_load_2d(stage.a, a_map, {.column = step * kDepth, .row = first_row}, full);
      ptx::tensor_load_2d(stage.b, b_map, {.column = step * kDepth, .row = first_column}, full);
    }
  } else if (warp == 1 && lane == 0) {
    constexpr std::uint32_t kWhat = ptx::tcgen05_tf32(kSms * kTileRows, kTileColumns);
    for (int step = 0; step < steps; ++step) {
      Stage& stage = ring.stages[step % kStages];
      wait_for(ring.full[step % kStages], step / kStages % 2);
      ptx::tcgen05_fence_after_sync();
      const std::uint64_t a = ptx::tcgen05_tile_128b(ptx::shared_address(stage.a));
      const std::uint64_t b = ptx::tcgen05_tile_128b(ptx::shared_address(stage.b));
#pragma unroll
      for (int i = 0; i < kDepth / kStep; ++i) {
        ptx::tcgen05_mma_tf32<kSms>(sums, a + 2 * i, b + 2 * i, kWhat, step + i > 0);
      }
      ptx::tcgen05_commit(ring.empty[step % kStages]);
    }
    ptx::tcgen05_commit(ring.done);
  }
  __syncwarp();
  wait_for(ring.done, 0);
  ptx::tcgen05_fence_after_sync();

  // A warp reads the 32 rows of tensor memory that its number gives it.
  const std::int64_t row = first_row + 32 * warp + lane;
  float* c = p.c + row * p.n + first_column;
  for (int column = 0; column < kTileColumns; column += 32) {
    float s[32];
    ptx::tcgen05_load_32(s, ptx::tensor_memory_at(sums, 32 * warp, column));
    ptx::tcgen05_wait_load();
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
      *reinterpret_cast<float4*>(c + column + i) = make_float4(s[i], s[i + 1], s[i + 2], s[i + 3]);
    }
  }
  ptx::tcgen05_fence_before_sync();
  __syncthreads();
  if (warp == 0) ptx::tensor_memory_free<kSms>(sums, kTileColumns);
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

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  CUtensorMap a_map, b_map;
  describe(p.a, p.m, p.k, kTileRows, a_map);
  describe(p.b, p.n, p.k, kPartColumns, b_map);
  cuda_check(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, stream = cuda.stream] {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(p.m / kTileRows, p.n / kTileColumns);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = sizeof(Ring);
    config.stream = stream;
    cuda_check(cudaLaunchKernelEx(&config, product, p, a_map, b_map));
  };
}

}  // namespace gauntlet::ch10::tcgen05_matmul::cuda
