// One kernel: the scores of 32 queries and all keys stay in shared memory from their product to the
// values'.
#include <cuda_runtime.h>

#include "catalog/ch09/fused_attention/pair.h"
#include "catalog/ch09/fused_attention/tiles.cuh"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::fused_attention::cuda {
namespace {

constexpr int kQueries = 32;    // of a block
constexpr int kTileKeys = 128;  // at a time
constexpr int kQueryPitch = kQueries + 4;
static_assert(kQueries * kTileKeys == 16 * kThreads, "four queries and four keys per thread");
static_assert(kQueries * kHeadDim == 8 * kThreads, "two queries and four columns per thread");

struct Shared {
  alignas(16) float q[kHeadDim][kQueryPitch];    // a query is a column
  alignas(16) float tile[kTileKeys * kHeadDim];  // of keys, then of values
  float inverse[kQueries];
  alignas(16) float scores[1];  // [kQueries, pitch]
};

constexpr std::size_t shared_bytes(std::int64_t keys) {
  return sizeof(Shared) + kQueries * static_cast<std::size_t>(keys + 4) * sizeof(float);
}
static_assert(shared_bytes(kMaxKeys) <= 227 * 1024);

/// Scores of the warp's four rows become exponentials, and their sums are kept.
__device__ void softmax_rows(Shared& shared, int pitch, int keys) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = 0; i < 4; ++i) {
    float* row = shared.scores + (4 * warp + i) * pitch;
    float top = -INFINITY, sum = 0;
    for (int key = 4 * lane; key < keys; key += 128) {
      const float4 s = load(row + key);
      top = fmaxf(top, fmaxf(fmaxf(s.x, s.y), fmaxf(s.z, s.w)));
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      top = fmaxf(top, __shfl_xor_sync(~0u, top, offset));
    }
    for (int key = 4 * lane; key < keys; key += 128) {
      const float4 s = exponentials(load(row + key), top);
      store(row + key, s);
      sum += (s.x + s.y) + (s.z + s.w);
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (lane == 0) shared.inverse[4 * warp + i] = 1 / sum;
  }
}

__global__ void __launch_bounds__(kThreads, 1) attend(Params p) {
  extern __shared__ __align__(16) unsigned char fused_attention_bytes[];
  auto& shared = *reinterpret_cast<Shared*>(fused_attention_bytes);
  const int thread = static_cast<int>(threadIdx.x);
  const int keys = static_cast<int>(p.keys), pitch = keys + 4;
  const std::int64_t head = blockIdx.y;
  const std::int64_t row = head * p.queries + std::int64_t{blockIdx.x} * kQueries;
  load_transposed<kQueries>(shared.q[0], kQueryPitch, p.q + row * kHeadDim);

  {
    const int x = thread % 32, y = thread / 32;
    for (int first = 0; first < keys; first += kTileKeys) {
      __syncthreads();
      load_tile<kHeadDim, kTileKeys>(shared.tile, p.k + head * kHeadDim * p.keys + first, p.keys);
      __syncthreads();
      float sums[4][4] = {};
#pragma unroll 8
      for (int d = 0; d < kHeadDim; ++d) {
        add_outer(sums, load(&shared.q[d][4 * y]), load(shared.tile + d * kTileKeys + 4 * x));
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        store(shared.scores + (4 * y + i) * pitch + first + 4 * x,
              make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
      }
    }
  }
  __syncthreads();
  softmax_rows(shared, pitch, keys);

  const int x = thread % 16, y = thread / 16;
  float sums[2][4] = {};
  for (int first = 0; first < keys; first += kTileKeys) {
    __syncthreads();
    load_tile<kTileKeys, kHeadDim>(shared.tile, p.v + (head * p.keys + first) * kHeadDim, kHeadDim);
    __syncthreads();
#pragma unroll 4
    for (int key = 0; key < kTileKeys; key += 4) {
      add_weighted(sums, shared.scores + 2 * y * pitch + first + key, pitch,
                   shared.tile + key * kHeadDim + 4 * x);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float inverse = shared.inverse[2 * y + i];
    store(p.out + (row + 2 * y + i) * kHeadDim + 4 * x,
          make_float4(sums[i][0] * inverse, sums[i][1] * inverse, sums[i][2] * inverse,
                      sums[i][3] * inverse));
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  cuda_check(cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes(kMaxKeys))));
  return [p, stream = cuda.stream] {
    const dim3 blocks(static_cast<unsigned>(p.queries / kQueries), static_cast<unsigned>(p.heads));
    attend<<<blocks, kThreads, shared_bytes(p.keys), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::fused_attention::cuda
