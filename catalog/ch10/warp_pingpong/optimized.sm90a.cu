// Persistent blocks whose two multiplying warpgroups take turns: each has every other tile, all 128
// rows of it, so that one multiplies while the other stores.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "catalog/ch10/warp_pingpong/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/tensor_map.h"
#include "lab/author/side.h"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_tf32.cuh"

namespace gauntlet::ch10::warp_pingpong::cuda {
namespace {

constexpr int kConsumers = 2;  // warpgroups that multiply; one more loads
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kTileRows = 128;
constexpr int kTileColumns = 128;
constexpr int kDepth = 32;      // 128 bytes, a row of the swizzle
constexpr int kStep = 8;        // of K per wgmma
constexpr int kGroupRows = 64;  // of a warpgroup
constexpr int kStages = 6;
static_assert(kTileRows == 2 * kGroupRows && kConsumers == 2);

struct Stage {
  alignas(1024) float a[kTileRows * kDepth];
  alignas(1024) float b[kTileColumns * kDepth];
};

struct Ring {
  Stage stages[kStages];
  std::uint64_t full[kStages];   // barriers: a stage has arrived
  std::uint64_t empty[kStages];  // all who read it are done
  std::uint64_t go[kConsumers];  // the other warpgroup has started all products of its tile
};
static_assert(sizeof(Ring) <= 227 * 1024);

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

/// sums += 64 rows of a stage by its 128 columns; does not wait.
__device__ __forceinline__ void start_product(float (&sums)[64], const float* a, const float* b,
                                              bool add) {
  const std::uint64_t of_a = ptx::wgmma_descriptor_128b(a);
  const std::uint64_t of_b = ptx::wgmma_descriptor_128b(b);
#pragma unroll
  for (int step = 0; step < kDepth / kStep; ++step) {
    // 32 bytes further along K are two units of the descriptor.
    ptx::wgmma_m64n128k8_tf32(sums, of_a + 2 * step, of_b + 2 * step, add || step > 0);
  }
}

/// A lane's sums: rows lane / 4 and 8 further of its warp's 16, two columns of every eight.
__device__ __forceinline__ void store_sums(const float (&sums)[64], float* c, int pitch) {
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
  const int row_tiles = p.m / kTileRows, tiles = row_tiles * (p.n / kTileColumns);
  const int steps = p.k / kDepth;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    // Of the warps that read a stage.
    for (std::uint64_t& barrier : ring.empty) ptx::mbarrier_init(barrier, 4);
    for (std::uint64_t& barrier : ring.go) ptx::mbarrier_init(barrier, 4);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  const auto tile_row = [&](int tile) { return tile % row_tiles * kTileRows; };
  const auto tile_column = [&](int tile) { return tile / row_tiles * kTileColumns; };
  if (group == kConsumers) {
    if (threadIdx.x % 128 > 0) return;
    int turn = 0;  // of the ring, over all tiles
    for (int tile = static_cast<int>(blockIdx.x); tile < tiles;
         tile += static_cast<int>(gridDim.x)) {
      for (int step = 0; step < steps; ++step, ++turn) {
        Stage& stage = ring.stages[turn % kStages];
        std::uint64_t& full = ring.full[turn % kStages];
        // The first time round nobody has to have read the stage.
        wait_for(ring.empty[turn % kStages], turn / kStages % 2 ^ 1);
        ptx::mbarrier_arrive_expect_tx(full, sizeof(stage.a) + sizeof(stage.b));
        ptx::tensor_load_2d(stage.a, a_map, {.column = step * kDepth, .row = tile_row(tile)}, full);
        ptx::tensor_load_2d(stage.b, b_map, {.column = step * kDepth, .row = tile_column(tile)},
                            full);
      }
    }
  } else {
    const auto release = [&](int of_turn) {
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(ring.empty[of_turn % kStages]);
    };
    // Tiles number `group`, `group` + 2, ... of this block; the ring has the others in between. A
    // parity tells two neighbouring rounds of the ring apart and no more, so a warpgroup must not
    // ask for its stages before the other has met all of its own.
    for (int number = group;; number += kConsumers) {
      const int tile = static_cast<int>(blockIdx.x + number * gridDim.x);
      if (tile >= tiles) break;
      wait_for(ring.go[group], (number / kConsumers % 2) ^ (group == 0 ? 1 : 0));
      const int first_turn = number * steps;
      float upper[64], lower[64];
      for (int step = 0; step < steps; ++step) {
        const int turn = first_turn + step;
        wait_for(ring.full[turn % kStages], turn / kStages % 2);
        const Stage& stage = ring.stages[turn % kStages];
        ptx::wgmma_fence();
        start_product(upper, stage.a, stage.b, step > 0);
        start_product(lower, stage.a + kGroupRows * kDepth, stage.b, step > 0);
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group<1>();  // the products of the step before are done
        if (step > 0) release(turn - 1);
      }
      if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(ring.go[kConsumers - 1 - group]);
      ptx::wgmma_wait_group<0>();
      release(first_turn + steps - 1);
      float* c = p.c + std::int64_t{tile_row(tile)} * p.n + tile_column(tile);
      store_sums(upper, c, p.n);
      store_sums(lower, c + std::int64_t{kGroupRows} * p.n, p.n);
    }
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
  const auto blocks =
      static_cast<unsigned>(std::min(cuda.num_sms, p.m / kTileRows * (p.n / kTileColumns)));
  cuda_check(cudaFuncSetAttribute(product, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  return [p, a_map, b_map, blocks, stream = cuda.stream] {
    product<<<blocks, kThreads, sizeof(Ring), stream>>>(p, a_map, b_map);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::warp_pingpong::cuda
