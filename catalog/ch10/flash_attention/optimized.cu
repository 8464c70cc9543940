// The same block, 64 keys at a time: what has been added up is scaled when a greater score turns
// up, so that a tile of scores is used at once and never leaves the SM.
#include <cuda_runtime.h>

#include "catalog/ch10/flash_attention/pair.h"
#include "catalog/ch10/flash_attention/tiles.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch10::flash_attention::cuda {
namespace {

constexpr int kTile = 64;  // queries of a block, and keys at a time
constexpr int kPitch = kTile + 4;
constexpr int kRowThreads = 16;  // that share four rows, half of a warp
static_assert(kTile == kHeadDim && kTile * kTile == 16 * kThreads, "four by four per thread");

struct Shared {
  alignas(16) float q[kHeadDim][kPitch];  // a query is a column
  alignas(16) float k[kHeadDim * kTile];
  alignas(16) float v[kTile * kHeadDim];
  alignas(16) float given[kTile * kTile];  // exponentials of a tile
};

template <class Operation>
__device__ __forceinline__ float over_row(float value, Operation operation) {
#pragma unroll
  for (int offset = kRowThreads / 2; offset > 0; offset /= 2) {
    value = operation(value, __shfl_xor_sync(~0u, value, offset));
  }
  return value;
}

/// Of one row, the same in all of its threads.
struct Running {
  float top = -INFINITY;
  float sum = 0;
};

/// A thread's four scores of a row become exponentials; what was added up before is scaled to them.
__device__ __forceinline__ float4 add_scores(Running& running, float (&out)[4], float4 s) {
  const float of_tile = over_row(fmaxf(fmaxf(s.x, s.y), fmaxf(s.z, s.w)),
                                 [](float a, float b) { return fmaxf(a, b); });
  const float top = fmaxf(running.top, of_tile);
  const float shrink = exponential(running.top - top);
  const float4 e = exponentials(s, top);
  const float sum = over_row((e.x + e.y) + (e.z + e.w), [](float a, float b) { return a + b; });
  running = {.top = top, .sum = running.sum * shrink + sum};
#pragma unroll
  for (float& word : out) word *= shrink;
  return e;
}

__global__ void __launch_bounds__(kThreads) attend(Params p) {
  extern __shared__ __align__(16) unsigned char flash_bytes[];
  auto& shared = *reinterpret_cast<Shared*>(flash_bytes);
  const int thread = static_cast<int>(threadIdx.x), x = thread % 16, y = thread / 16;
  const std::int64_t head = blockIdx.y;
  const std::int64_t row = head * p.queries + std::int64_t{blockIdx.x} * kTile;
  const float* k = p.k + head * kHeadDim * p.keys;
  const float* v = p.v + head * p.keys * kHeadDim;
  load_transposed<kTile>(shared.q[0], kPitch, p.q + row * kHeadDim);

  Running running[4];
  float out[4][4] = {};
  for (std::int64_t first = 0; first < p.keys; first += kTile) {
    __syncthreads();
    load_tile<kHeadDim, kTile>(shared.k, k + first, p.keys);
    load_tile<kTile, kHeadDim>(shared.v, v + first * kHeadDim, kHeadDim);
    __syncthreads();
    float sums[4][4] = {};
#pragma unroll 8
    for (int d = 0; d < kHeadDim; ++d) {
      add_outer(sums, load(&shared.q[d][4 * y]), load(shared.k + d * kTile + 4 * x));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 s = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
      store(shared.given + (4 * y + i) * kTile + 4 * x, add_scores(running[i], out[i], s));
    }
    __syncwarp();  // a row is written and read by one half of a warp
#pragma unroll 4
    for (int key = 0; key < kTile; key += 4) {
      add_weighted(out, shared.given + 4 * y * kTile + key, kTile,
                   shared.v + key * kHeadDim + 4 * x);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float inverse = 1 / running[i].sum;
    store(p.out + (row + 4 * y + i) * kHeadDim + 4 * x,
          make_float4(out[i][0] * inverse, out[i][1] * inverse, out[i][2] * inverse,
                      out[i][3] * inverse));
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  cuda_check(cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Shared))));
  return [p, stream = cuda.stream] {
    const dim3 blocks(static_cast<unsigned>(p.queries / kTile), static_cast<unsigned>(p.heads));
    attend<<<blocks, kThreads, sizeof(Shared), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::flash_attention::cuda
