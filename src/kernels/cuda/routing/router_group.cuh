// Norm and router logits of eight tokens by a cluster: warps share the columns. Tensor cores take
// a float32 row as three bf16 terms, which hold all its bits. Sums go from warp to block to cluster
// in one order, so that a token's bits are the same in any company.
#pragma once
#include <cstdint>

#include "kernels/cuda/bf16_pair.cuh"
#include "kernels/cuda/routing/router.h"
#include "ptx/cluster.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/mma.cuh"

namespace gauntlet::kernels::cuda::inline routing {

constexpr int kGroupTokens = 8;
constexpr int kRouterWarps = 12;
constexpr int kRouterThreads = 32 * kRouterWarps;
constexpr int kPieceColumns = 32;

/// Blocks of a cluster: 96 warps for the 90 pieces of a row of gpt-oss.
constexpr int kRouterCluster = 8;
/// The same in device code: without clusters a block is alone.
__device__ constexpr int router_blocks() {
#if __CUDA_ARCH__ >= 900
  return kRouterCluster;
#else
  return 1;
#endif
}

/// Rows of tokens: their products by expert, then their squares. Four columns more than experts
/// keep the stores of mma results free of bank conflicts.
template <int kExperts>
struct Sums {
  float of[kGroupTokens][kExperts + 4];
};

/// Where a thread stands. Of a piece it has eight columns: of token `row` of the group, and of
/// every eighth expert from `row` on.
struct RouterPlace {
  int rank = 0;  // of its block in the cluster
  int warp = 0, row = 0, part = 0;

  __device__ int first_piece() const { return rank * kRouterWarps + warp; }
  __device__ int column(int piece) const { return piece * kPieceColumns + 8 * part; }
};
__device__ constexpr int piece_step() { return router_blocks() * kRouterWarps; }

__device__ __forceinline__ RouterPlace router_place() {
  const int lane = threadIdx.x % 32;
  RouterPlace at{.warp = static_cast<int>(threadIdx.x / 32), .row = lane / 4, .part = lane % 4};
#if __CUDA_ARCH__ >= 900
  at.rank = static_cast<int>(ptx::cluster_rank());
#endif
  return at;
}

__device__ __forceinline__ void load_eight(const float* from, bool there, float (&v)[8]) {
  float4 low{}, high{};
  if (there) {
    low = reinterpret_cast<const float4*>(from)[0];
    high = reinterpret_cast<const float4*>(from)[1];
  }
  v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
  v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

/// Eight columns of every eighth expert from `first` on, as mma takes them.
template <int kEighths>
__device__ __forceinline__ void load_weights(const Router& work, int first, int column,
                                             uint4 (&weight)[kEighths]) {
  const int row = threadIdx.x % 32 / 4;
#pragma unroll
  for (int j = 0; j < kEighths; ++j) {
    const int expert = first + 8 * j + row;
    weight[j] = uint4{};
    if (column < work.hidden && expert < work.num_experts) {
      weight[j] =
          __ldg(reinterpret_cast<const uint4*>(work.weight + expert * work.hidden + column));
    }
  }
}

/// Narrow rows have no more pieces than a cluster has warps: each keeps its part of the weights
/// from group to group. Of wide ones a warp takes piece after piece.
enum class Rows { narrow, wide };

/// A thread's part of a narrow row's weights.
template <int kExperts>
struct HeldWeights {
  uint4 router[kExperts / 8];
  float norm[8];
};

/// The bf16 numbers that the upper halves of a and b are; what is left in a and b is exact.
__device__ __forceinline__ std::uint32_t take_upper(float& a, float& b) {
  const std::uint32_t upper = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x7632);
  const float2 taken = unpack_bf16(upper);
  a -= taken.x, b -= taken.y;
  return upper;
}

/// sums += weights by y: experts in rows, tokens in columns. Small terms first.
template <int kEighths>
__device__ __forceinline__ void multiply(const uint4 (&weight)[kEighths], const float (&y)[8],
                                         float (&sums)[kEighths / 2][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float rest[4] = {y[4 * half], y[4 * half + 1], y[4 * half + 2], y[4 * half + 3]};
    std::uint32_t terms[3][2];
#pragma unroll
    for (int term = 2; term >= 0; --term) {
      terms[term][0] = take_upper(rest[0], rest[1]);
      terms[term][1] = take_upper(rest[2], rest[3]);
    }
#pragma unroll
    for (int term = 0; term < 3; ++term) {
#pragma unroll
      for (int tile = 0; tile < kEighths / 2; ++tile) {
        const uint4 &low = weight[2 * tile], &high = weight[2 * tile + 1];
        const std::uint32_t a[4] = {half == 0 ? low.x : low.z, half == 0 ? high.x : high.z,
                                    half == 0 ? low.y : low.w, half == 0 ? high.y : high.w};
        ptx::mma_m16n8k16_bf16(sums[tile], a, terms[term]);
      }
    }
  }
}

/// y = x by the norm's weights; its scale comes last, when the squares are known.
__device__ __forceinline__ void weigh(const float (&x)[8], const float (&norm)[8], float (&y)[8],
                                      float& squares) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    squares = __fmaf_rn(x[i], x[i], squares);
    y[i] = __fmul_rn(x[i], norm[i]);
  }
}

/// What a warp has summed of experts from `first` on, to shared memory.
template <int kTiles, int kExperts>
__device__ __forceinline__ void store_products(const RouterPlace& at,
                                               const float (&sums)[kTiles][4], int first,
                                               Sums<kExperts>& out) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out.of[2 * at.part + i % 2][first + 16 * tile + 8 * (i / 2) + at.row] = sums[tile][i];
    }
  }
}

template <int kExperts>
__device__ __forceinline__ void store_squares(const RouterPlace& at, float squares,
                                              Sums<kExperts>& out) {
  squares += __shfl_xor_sync(0xFFFFFFFF, squares, 1);
  squares += __shfl_xor_sync(0xFFFFFFFF, squares, 2);
  if (at.part == 0) {
    *reinterpret_cast<float4*>(&out.of[at.row][kExperts]) = {squares, 0, 0, 0};
  }
}

__device__ __forceinline__ void store_normed(const Router& work, std::int64_t token, int column,
                                             const float (&y)[8], float scale) {
  *reinterpret_cast<uint4*>(work.normed + token * work.normed_stride + column) = {
      pack_bf16(y[0] * scale, y[1] * scale), pack_bf16(y[2] * scale, y[3] * scale),
      pack_bf16(y[4] * scale, y[5] * scale), pack_bf16(y[6] * scale, y[7] * scale)};
}

/// A warp's sums over its piece of a narrow row, which leaves y.
template <int kExperts>
__device__ __forceinline__ void sum_narrow(const RouterPlace& at, const HeldWeights<kExperts>& held,
                                           const float (&x)[8], float (&y)[8],
                                           Sums<kExperts>& out) {
  float sums[kExperts / 16][4] = {};
  float squares = 0;
  weigh(x, held.norm, y, squares);
  multiply(held.router, y, sums);
  store_products(at, sums, 0, out);
  store_squares(at, squares, out);
}

/// A warp's sums over its pieces of a wide row; `row` of a missing token is null.
template <int kExperts>
__device__ __forceinline__ void sum_wide(const Router& work, const RouterPlace& at,
                                         const float* row, Sums<kExperts>& out) {
  constexpr int kTogether = 32;
  float squares = 0;
#pragma unroll 1
  for (int first = 0; first < kExperts; first += kTogether) {
    float sums[kTogether / 16][4] = {};
    squares = 0;
#pragma unroll 1
    for (int piece = at.first_piece(); piece * kPieceColumns < work.hidden; piece += piece_step()) {
      const int column = at.column(piece);
      float x[8], norm[8], y[8];
      uint4 weight[kTogether / 8];
      load_eight(row + column, row != nullptr && column < work.hidden, x);
      load_eight(work.norm_weight + column, column < work.hidden, norm);
      load_weights(work, first, column, weight);
      weigh(x, norm, y, squares);
      multiply(weight, y, sums);
    }
    store_products(at, sums, first, out);
  }
  store_squares(at, squares, out);
}

__device__ __forceinline__ void store_wide(const Router& work, const RouterPlace& at,
                                           std::int64_t token, const float* row, float scale) {
#pragma unroll 1
  for (int piece = at.first_piece(); at.column(piece) < work.hidden; piece += piece_step()) {
    const int column = at.column(piece);
    float x[8], norm[8], y[8], squares = 0;
    load_eight(row + column, true, x);
    load_eight(work.norm_weight + column, true, norm);
    weigh(x, norm, y, squares);
    store_normed(work, token, column, y, scale);
  }
}

/// Which blocks of a cluster choose experts.
enum class Choosers { first_block, every_block };

template <Choosers kChoosers>
__device__ __forceinline__ int chooser_of(int token) {
  return kChoosers == Choosers::first_block ? 0 : token % router_blocks();
}

/// What the blocks of a cluster tell each other of a group: each its sums, the logits to the block
/// that chooses, the squares to all. There are two of them, in turns: who sends for a turn has
/// heard of the turn before from all, which read the one before that.
template <int kExperts>
struct Exchange {
  Sums<kExperts>* of_block;  // [blocks]
  std::uint64_t& arrived;

  template <Choosers kChoosers>
  __device__ __forceinline__ void send(const RouterPlace& at, int tokens,
                                       const Sums<kExperts>* of_warp) const {
    constexpr int kParts = kExperts / 4 + 1;
    static_assert(kGroupTokens * kParts < kRouterThreads);
    if (threadIdx.x == kRouterThreads - 1) expect<kChoosers>(at, tokens);
    const int token = static_cast<int>(threadIdx.x) / kParts, part = threadIdx.x % kParts;
    if (token >= tokens) return;
    float4 sum{};
#pragma unroll
    for (int warp = 0; warp < kRouterWarps; ++warp) {
      const float4 v = *reinterpret_cast<const float4*>(&of_warp[warp].of[token][4 * part]);
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    float* to = &of_block[at.rank].of[token][4 * part];
    if (part < kParts - 1) {
      put(to, sum, chooser_of<kChoosers>(token));
    } else {
#pragma unroll
      for (int rank = 0; rank < router_blocks(); ++rank) put(to, sum, rank);
    }
  }

  /// All threads: until everything sent to this block is there.
  __device__ __forceinline__ void receive(unsigned parity) const {
#if __CUDA_ARCH__ >= 900
    while (!ptx::mbarrier_try_wait_cluster(arrived, parity)) {
    }
#else
    __syncthreads();
#endif
  }

  /// A column of a token's sums.
  __device__ __forceinline__ float sum(int token, int column) const {
    float sum = 0;
#pragma unroll
    for (int rank = 0; rank < router_blocks(); ++rank) sum += of_block[rank].of[token][column];
    return sum;
  }
  __device__ __forceinline__ float norm_scale(const Router& work, int token) const {
    return 1.0f / sqrtf(sum(token, kExperts) / static_cast<float>(work.hidden) + work.epsilon);
  }

 private:
  template <Choosers kChoosers>
  __device__ __forceinline__ void expect(const RouterPlace& at, int tokens) const {
#if __CUDA_ARCH__ >= 900
    int chosen_here = 0;
    for (int token = 0; token < tokens; ++token) {
      chosen_here += chooser_of<kChoosers>(token) == at.rank ? 1 : 0;
    }
    ptx::mbarrier_arrive_expect_tx(
        arrived,
        static_cast<std::uint32_t>(router_blocks() * (tokens + chosen_here * (kExperts / 4)) *
                                   static_cast<int>(sizeof(float4))));
#endif
  }
  __device__ __forceinline__ void put(float* to, const float4& v, int rank) const {
#if __CUDA_ARCH__ >= 900
    const auto r = static_cast<std::uint32_t>(rank);
    ptx::store_async_16(ptx::map_shared(ptx::shared_address(to), r), v,
                        ptx::map_shared(ptx::shared_address(&arrived), r));
#else
    *reinterpret_cast<float4*>(to) = v;
#endif
  }
};

}  // namespace gauntlet::kernels::cuda::inline routing
