// The same products, 64 keys at a time: their scores become weights in registers, with a running
// maximum, and are used at once. The next keys and values are copied meanwhile.
#include <cuda_runtime.h>

#include "catalog/labs/attention_ladder/lab.h"
#include "catalog/labs/attention_ladder/mma_tiles.cuh"
#include "core/check.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/exp2.cuh"

namespace gauntlet::labs::attention_ladder::cuda {
namespace {

template <int kHeadDim>
struct FlashShared {
  Tile<kTileQueries, kHeadDim> queries;
  Tile<kTileKeys, kHeadDim> keys[2];
  Tile<kTileKeys, kHeadDim> values[2];
};

using TileScores = float[kTileKeys / 8][4];

/// Of a lane's two rows, which it shares with three neighbours.
struct Running {
  float top[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};  // this lane's
};

/// Scores become weights; returns what earlier sums are multiplied with. The first tile has a key
/// for every query, so the greatest score is finite.
__device__ __forceinline__ float2 soften_tile(Running& running, TileScores& scores, float scale) {
  float shrink[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float top = running.top[row];
#pragma unroll
    for (int n = 0; n < kTileKeys / 8; ++n) {
      top = fmaxf(top, fmaxf(scores[n][2 * row], scores[n][2 * row + 1]));
    }
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    shrink[row] = ptx::exp2_approx((running.top[row] - top) * scale);
    running.top[row] = top;
    float sum = running.sum[row] * shrink[row];
#pragma unroll
    for (int n = 0; n < kTileKeys / 8; ++n) {
#pragma unroll
      for (int i = 2 * row; i < 2 * row + 2; ++i) {
        scores[n][i] = ptx::exp2_approx(fmaf(scores[n][i], scale, -top * scale));
        sum += scores[n][i];
      }
    }
    running.sum[row] = sum;
  }
  return make_float2(shrink[0], shrink[1]);
}

template <int kHeadDim>
__global__ void __launch_bounds__(kTileThreads) flash(Params p, float scale) {
  extern __shared__ __align__(128) unsigned char flash_bytes[];
  auto& shared = *reinterpret_cast<FlashShared<kHeadDim>*>(flash_bytes);
  // The longest rows first.
  const int first_query = static_cast<int>(gridDim.y - 1 - blockIdx.y) * kTileQueries;
  const std::int64_t head_row = std::int64_t{blockIdx.x} * p.sequence;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int tiles = first_query / kTileKeys + kTileQueries / kTileKeys;
  const auto load = [&](int tile) {
    const Bf16* const at = p.k + (head_row + tile * kTileKeys) * kHeadDim;
    shared.keys[tile % 2].load(at);
    shared.values[tile % 2].load(p.v + (at - p.k));
    ptx::cp_async_commit_group();
  };
  shared.queries.load(p.q + (head_row + first_query) * kHeadDim);
  load(0);

  Running running;
  float sums[kHeadDim / 8][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    ptx::cp_async_wait_group<0>();
    __syncthreads();
    if (tile + 1 < tiles) load(tile + 1);

    TileScores scores = {};
#pragma unroll
    for (int d = 0; d < kHeadDim; d += 16) {
      std::uint32_t a[4];
      load_a(a, shared.queries, warp * 16, d);
      multiply_rows<kTileKeys>(scores, a, shared.keys[tile % 2], d);
    }
    if ((tile + 1) * kTileKeys > first_query + warp * 16) {
#pragma unroll
      for (int n = 0; n < kTileKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = tile * kTileKeys + n * 8 + lane % 4 * 2 + i % 2;
          if (key > first_query + warp * 16 + lane / 4 + i / 2 * 8) scores[n][i] = -INFINITY;
        }
      }
    }
    const float2 shrink = soften_tile(running, scores, scale);
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      sums[n][0] *= shrink.x;
      sums[n][1] *= shrink.x;
      sums[n][2] *= shrink.y;
      sums[n][3] *= shrink.y;
    }
#pragma unroll
    for (int step = 0; step < kTileKeys / 16; ++step) {
      // Where a lane has sums of two neighbouring products is where it has one operand.
      const auto& left = scores[2 * step];
      const auto& right = scores[2 * step + 1];
      const std::uint32_t a[4] = {pack_pair(left[0], left[1]), pack_pair(left[2], left[3]),
                                  pack_pair(right[0], right[1]), pack_pair(right[2], right[3])};
      multiply_columns(sums, a, shared.values[tile % 2], 16 * step);
    }
  }
  float inverse[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float sum = running.sum[row] + __shfl_xor_sync(~0u, running.sum[row], 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    inverse[row] = 1 / sum;
  }
  store_rows<kHeadDim>(p.out + (head_row + first_query + warp * 16) * kHeadDim, sums, inverse);
}

template <int kHeadDim>
lab::Side flash_side(const Params& p, const lab::Cuda& cuda) {
  constexpr int kBytes = static_cast<int>(sizeof(FlashShared<kHeadDim>));
  cuda_check(
      cudaFuncSetAttribute(flash<kHeadDim>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  return [p, stream = cuda.stream] {
    const dim3 blocks(static_cast<unsigned>(p.heads),
                      static_cast<unsigned>(p.sequence / kTileQueries));
    flash<kHeadDim><<<blocks, kTileThreads, kBytes, stream>>>(p, p.log2_scale());
    cuda_check(cudaGetLastError());
  };
}

}  // namespace

lab::Side flash_mma(const Params& p, const lab::Cuda& cuda) {
  if (p.head_dim == 64) return flash_side<64>(p, cuda);
  check(p.head_dim == 128, "rungs have heads of 64 and 128 dimensions");
  return flash_side<128>(p, cuda);
}

}  // namespace gauntlet::labs::attention_ladder::cuda
