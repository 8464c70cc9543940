// Two tiles of sums in tensor memory: the next tile's products go into one while the other is read,
// so that loads, products and stores overlap.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "catalog/ch10/tmem_triple_overlap/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/tensor_map.h"
#include "lab/author/side.h"
#include "ptx/dynamic_shared.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tcgen05.cuh"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::ch10::tmem_triple_overlap::cuda {
namespace {

constexpr int kDrainWarps = 4;  // 32 rows of sums each; one warp more loads, and one multiplies
constexpr int kThreads = (kDrainWarps + 2) * 32;
constexpr int kTileRows = 128;
constexpr int kTileColumns = 256;
constexpr int kDepth = 32;  // 128 bytes, a row of the swizzle
constexpr int kStep = 8;    // of K per product
constexpr int kStages = 4;
constexpr int kSums = 2;  // tiles of sums in tensor memory
static_assert(kSums * kTileColumns <= 512, "what tensor memory has");

struct Stage {
  alignas(1024) float a[kTileRows * kDepth];
  alignas(1024) float b[kTileColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
  std::uint64_t full[kStages];      // barriers: a stage has arrived
  std::uint64_t empty[kStages];     // its products are done
  std::uint64_t sums_full[kSums];   // all products of a tile are done
  std::uint64_t sums_empty[kSums];  // its sums have been read
  std::uint32_t sums;               // address in tensor memory
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
  const int row_tiles = p.m / kTileRows, tiles = row_tiles * (p.n / kTileColumns);
  const int steps = p.k / kDepth;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, 1);
    for (std::uint64_t& barrier : ring.sums_full) ptx::mbarrier_init(barrier, 1);
    for (std::uint64_t& barrier : ring.sums_empty) ptx::mbarrier_init(barrier, kDrainWarps);
    ptx::fence_mbarrier_init();
  }
  __syncwarp();
  if (warp == 0) ptx::tensor_memory_allocate<1>(&ring.sums, kSums * kTileColumns);
  ptx::tcgen05_fence_before_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_sync();
  const std::uint32_t sums = ring.sums;

  const auto tile_of = [&](int number) {
    return static_cast<int>(blockIdx.x) + number * static_cast<int>(gridDim.x);
  };
  const auto tile_row = [&](int tile) { return tile % row_tiles * kTileRows; };
  const auto tile_column = [&](int tile) { return tile / row_tiles * kTileColumns; };
  int turn = 0;  // of the ring, over all tiles
  if (warp == kDrainWarps && lane == 0) {
    for (int number = 0; tile_of(number) < tiles; ++number) {
      const int row = tile_row(tile_of(number)), column = tile_column(tile_of(number));
      for (int step = 0; step < steps; ++step, ++turn) {
        Stage& stage = ring.stages[turn % kStages];
        std::uint64_t& full = ring.full[turn % kStages];
        // The first time round no product has to have read the stage.
        wait_for(ring.empty[turn % kStages], turn / kStages % 2 ^ 1);
        ptx::mbarrier_arrive_expect_tx(full, sizeof(stage.a) + sizeof(stage.b));
        ptx::tensor_load_2d(stage.a, a_map, {.column = step * kDepth, .row = row}, full);
        ptx::tensor_load_2d(stage.b, b_map, {.column = step * kDepth, .row = column}, full);
      }
    }
  } else if (warp == kDrainWarps + 1 && lane == 0) {
    constexpr std::uint32_t kWhat = ptx::tcgen05_tf32(kTileRows, kTileColumns);
    for (int number = 0; tile_of(number) < tiles; ++number) {
      const std::uint32_t to = ptx::tensor_memory_at(sums, 0, number % kSums * kTileColumns);
      // The first time round nobody has to have read the sums.
      wait_for(ring.sums_empty[number % kSums], number / kSums % 2 ^ 1);
      ptx::tcgen05_fence_after_sync();
      for (int step = 0; step < steps; ++step, ++turn) {
        Stage& stage = ring.stages[turn % kStages];
        wait_for(ring.full[turn % kStages], turn / kStages % 2);
        ptx::tcgen05_fence_after_sync();
        const std::uint64_t a = ptx::tcgen05_tile_128b(ptx::shared_address(stage.a));
        const std::uint64_t b = ptx::tcgen05_tile_128b(ptx::shared_address(stage.b));
#pragma unroll
        for (int i = 0; i < kDepth / kStep; ++i) {
          ptx::tcgen05_mma_tf32<1>(to, a + 2 * i, b + 2 * i, kWhat, step + i > 0);
        }
        ptx::tcgen05_commit(ring.empty[turn % kStages]);
      }
      ptx::tcgen05_commit(ring.sums_full[number % kSums]);
    }
  } else if (warp < kDrainWarps) {
    for (int number = 0; tile_of(number) < tiles; ++number) {
      const int tile = tile_of(number);
      wait_for(ring.sums_full[number % kSums], number / kSums % 2);
      ptx::tcgen05_fence_after_sync();
      const std::int64_t row = tile_row(tile) + 32 * warp + lane;
      float* c = p.c + row * p.n + tile_column(tile);
      for (int column = 0; column < kTileColumns; column += 32) {
        float s[32];
        ptx::tcgen05_load_32(
            s, ptx::tensor_memory_at(sums, 32 * warp, number % kSums * kTileColumns + column));
        ptx::tcgen05_wait_load();
#pragma unroll
        for (int i = 0; i < 32; i += 4) {
          *reinterpret_cast<float4*>(c + column + i) =
              make_float4(s[i], s[i + 1], s[i + 2], s[i + 3]);
        }
      }
      ptx::tcgen05_fence_before_sync();
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(ring.sums_empty[number % kSums]);
    }
  }
  __syncthreads();
  if (warp == 0) ptx::tensor_memory_free<1>(sums, kSums * kTileColumns);
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
  const auto blocks =
      static_cast<unsigned>(std::min(cuda.num_sms, p.m / kTileRows * (p.n / kTileColumns)));
  cuda_check(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, blocks, stream = cuda.stream] {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(kThreads);
    config.dynamicSmemBytes = sizeof(Ring);
    config.stream = stream;
    cuda_check(cudaLaunchKernelEx(&config, product, p, a_map, b_map));
  };
}

}  // namespace gauntlet::ch10::tmem_triple_overlap::cuda
