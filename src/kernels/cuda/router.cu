// Warps share the experts. A single token's block has the weights under way before the kernel in
// front has ended; blocks of many tokens use each weight for several. Dealing is a stable sort by
// expert: a warp finds an expert's picks by ballots, 32 at a time.
#include <algorithm>

#include "kernels/cuda/bf16_pair.cuh"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/choose_experts.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/router.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFF;

/// What a block of one token has under way before the kernel in front has ended: the weights of its
/// warps' first experts, the norm's weights, the biases.
constexpr int kOneThreads = 512;
constexpr int kOneWarps = kOneThreads / 32;
constexpr int kAheadExperts = 2;
constexpr int kAheadPieces = 10;
struct Ahead {
  uint4 weight[kAheadExperts][kAheadPieces];
};

__device__ __forceinline__ void load_ahead(const Router& work, Ahead& ahead) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < kAheadExperts; ++j) {
    const int expert = warp + j * kOneWarps;
    const auto* from = reinterpret_cast<const uint4*>(work.weight + expert * work.hidden);
#pragma unroll
    for (int k = 0; k < kAheadPieces; ++k) {
      const int piece = lane + 32 * k;
      if (expert < work.num_experts && piece < work.hidden / 8) {
        ahead.weight[j][k] = __ldg(from + piece);
      }
    }
  }
}

/// The norms of kTokens rows into shared memory as float and out as bf16; threads share them
/// evenly.
template <int kBlockThreads, int kTokens>
__device__ void normalise(const Router& work, std::int64_t first, float* rows, float* partial) {
  constexpr int kOwn = kBlockThreads / kTokens;  // threads of a row
  constexpr int kOwnWarps = kOwn / 32;
  const int own = threadIdx.x / kOwn, lane = threadIdx.x % kOwn;
  const std::int64_t token = first + own;
  const bool real = token < work.num_tokens;
  const auto* x = reinterpret_cast<const float4*>(work.x + token * work.hidden);
  const auto* weight = reinterpret_cast<const float4*>(work.norm_weight);
  auto* kept = reinterpret_cast<float4*>(rows + own * work.hidden);
  const int fours = static_cast<int>(work.hidden / 4);
  float squares = 0;
  for (int i = lane; real && i < fours; i += kOwn) {
    const float4 v = x[i];
    kept[i] = v;
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  squares = warp_sum(squares);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = squares;
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kOwnWarps; ++w) sum += partial[own * kOwnWarps + w];
  const float scale = rsqrtf(sum / static_cast<float>(work.hidden) + work.epsilon);
  auto* out = reinterpret_cast<uint2*>(work.normed + token * work.normed_stride);
  for (int i = lane; real && i < fours; i += kOwn) {
    float4 v = kept[i];
    const float4 w = weight[i];
    v.x *= scale * w.x, v.y *= scale * w.y, v.z *= scale * w.z, v.w *= scale * w.w;
    kept[i] = v;
    out[i] = {pack_bf16(v.x, v.y), pack_bf16(v.z, v.w)};
  }
}

__device__ __forceinline__ float dot_piece(const uint4& w, const float4& a, const float4& b) {
  const float2 w0 = unpack_bf16(w.x), w1 = unpack_bf16(w.y), w2 = unpack_bf16(w.z),
               w3 = unpack_bf16(w.w);
  return w0.x * a.x + w0.y * a.y + w1.x * a.z + w1.y * a.w + w2.x * b.x + w2.y * b.y + w3.x * b.z +
         w3.y * b.w;
}

/// One expert's logits for kTokens rows, from piece `first` on.
template <int kTokens>
__device__ __forceinline__ void add_pieces(const Router& work, int expert, int first,
                                           const float* rows, float (&sums)[kTokens]) {
  const auto* weight = reinterpret_cast<const uint4*>(work.weight + expert * work.hidden);
#pragma unroll(kTokens == 1 ? 2 : 1)
  for (int piece = first + threadIdx.x % 32; piece < work.hidden / 8; piece += 32) {
    const uint4 w = __ldg(weight + piece);
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      const auto* x = reinterpret_cast<const float4*>(rows + t * work.hidden);
      sums[t] += dot_piece(w, x[2 * piece], x[2 * piece + 1]);
    }
  }
}

template <int kTokens>
__device__ __forceinline__ void put_logits(const Router& work, int expert,
                                           const float (&sums)[kTokens],
                                           float (*logits)[kMostRouterExperts]) {
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const float sum = warp_sum(sums[t]);
    if (threadIdx.x % 32 == 0) logits[t][expert] = sum + work.bias[expert];
  }
}

/// The choices of all tokens, in shared memory.
struct Picks {
  std::int32_t chosen[kMostDealtTokens * kMostExpertsPerToken];
  float weights[kMostDealtTokens * kMostExpertsPerToken];
};

/// One warp: where `expert` begins, and its picks in their order.
__device__ void deal_expert(const Deal& work, const Picks& all, int picks, int expert) {
  const std::int32_t* chosen = all.chosen;
  const int lane = threadIdx.x % 32;
  int before = 0, own = 0;
  for (int first = 0; first < picks; first += 32) {
    const int e = first + lane < picks ? chosen[first + lane] : -1;
    before += __popc(__ballot_sync(kAll, e >= 0 && e < expert));
    own += __popc(__ballot_sync(kAll, e == expert));
  }
  if (lane == 0) {
    work.first_slot[expert] = before;
    if (expert == work.num_experts - 1) work.first_slot[expert + 1] = before + own;
  }
  int slot = before;
  for (int first = 0; first < picks && own > 0; first += 32) {
    const int i = first + lane;
    const bool hit = i < picks && chosen[i] == expert;
    const unsigned hits = __ballot_sync(kAll, hit);
    if (hit) {
      const int at = slot + __popc(hits & ((1u << lane) - 1));
      work.slot_token[at] = i / work.experts_per_token;
      work.slot_row[at] = i;
      work.slot_weight[at] = all.weights[i];
    }
    slot += __popc(hits);
  }
}

/// Tokens that a block of many takes at a time.
constexpr int kTogether = 8;

__global__ void __launch_bounds__(kThreads, 1) route_kernel(const Router work) {
  extern __shared__ __align__(16) float rows[];
  __shared__ float partial[kWarps];
  __shared__ float logits[kTogether][kMostRouterExperts];
  const int warp = threadIdx.x / 32;
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  for (std::int64_t first = std::int64_t{blockIdx.x} * kTogether; first < work.num_tokens;
       first += std::int64_t{gridDim.x} * kTogether) {
    normalise<kThreads, kTogether>(work, first, rows, partial);
    __syncthreads();
    for (int expert = warp; expert < work.num_experts; expert += kWarps) {
      float sums[kTogether] = {};
      add_pieces(work, expert, 0, rows, sums);
      put_logits(work, expert, sums, logits);
    }
    __syncthreads();
    if (warp < kTogether && first + warp < work.num_tokens) {
      choose(work, first + warp, logits[warp]);
    }
  }
}

/// The token of this block; the first warp has its choice.
__device__ __forceinline__ Choice route_one(const Router& work, const Ahead& ahead, float* row,
                                            const float* biases) {
  __shared__ float partial[kOneWarps];
  __shared__ float logits[kMostRouterExperts];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  normalise<kOneThreads, 1>(work, blockIdx.x, row, partial);
  __syncthreads();
  const auto* x = reinterpret_cast<const float4*>(row);
  float sums[kAheadExperts] = {};
#pragma unroll
  for (int k = 0; k < kAheadPieces; ++k) {
    const int piece = lane + 32 * k;
    if (piece >= work.hidden / 8) break;
    const float4 a = x[2 * piece], b = x[2 * piece + 1];
#pragma unroll
    for (int j = 0; j < kAheadExperts; ++j) sums[j] += dot_piece(ahead.weight[j][k], a, b);
  }
  for (int expert = warp, j = 0; expert < work.num_experts; expert += kOneWarps, ++j) {
    float own[1] = {j == 0 ? sums[0] : j == 1 ? sums[1] : 0.0f};
    add_pieces(work, expert, j < kAheadExperts ? 32 * kAheadPieces : 0, row, own);
    const float sum = warp_sum(own[0]);
    if (lane == 0) logits[expert] = sum + biases[expert];
  }
  __syncthreads();
  return warp == 0 ? choose(work, blockIdx.x, logits) : Choice{};
}

__global__ void __launch_bounds__(kOneThreads, 1)
    route_and_deal_kernel(const Router work, const Deal dealt, std::int32_t* finished) {
  extern __shared__ __align__(16) float rows[];
  __shared__ bool last;
  __shared__ float biases[kMostRouterExperts];
  __shared__ Picks all;
  Ahead ahead;
  load_ahead(work, ahead);
  if (threadIdx.x < work.num_experts) biases[threadIdx.x] = __ldg(work.bias + threadIdx.x);
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const Choice own = route_one(work, ahead, rows, biases);
  const int picks = static_cast<int>(dealt.num_tokens) * dealt.experts_per_token;
  if (gridDim.x == 1) {
    if (threadIdx.x < picks)
      all.chosen[threadIdx.x] = own.expert, all.weights[threadIdx.x] = own.weight;
  } else {
    if (threadIdx.x < 32) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      last = atomicAdd(finished, 1) == static_cast<int>(gridDim.x) - 1;
      if (last) *finished = 0;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int i = threadIdx.x; i < picks; i += kOneThreads) {
      all.chosen[i] = dealt.chosen[i];
      all.weights[i] = dealt.weights[i];
    }
  }
  __syncthreads();
  for (int e = threadIdx.x / 32; e < dealt.num_experts; e += kOneWarps) {
    deal_expert(dealt, all, picks, e);
  }
}

/// Many picks: a block per expert. Threads count their own stretch, so order is kept.
__global__ void __launch_bounds__(kThreads) deal_kernel(const Deal work) {
  __shared__ int own_of[kWarps];
  __shared__ int before_all;
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int expert = blockIdx.x;
  const int picks = static_cast<int>(work.num_tokens) * work.experts_per_token;
  const int stretch = (picks + kThreads - 1) / kThreads;
  const int begin = min(picks, static_cast<int>(threadIdx.x) * stretch);
  const int end = min(picks, begin + stretch);
  if (threadIdx.x == 0) before_all = 0;
  __syncthreads();
  int before = 0, own = 0;
  for (int i = begin; i < end; ++i) {
    const int e = work.chosen[i];
    before += e >= 0 && e < expert ? 1 : 0;
    own += e == expert ? 1 : 0;
  }
  int up_to = own;  // own picks of this thread and those before it in its warp
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(kAll, up_to, offset);
    if (static_cast<int>(threadIdx.x % 32) >= offset) up_to += other;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) before += __shfl_xor_sync(kAll, before, offset);
  if (threadIdx.x % 32 == 31) own_of[threadIdx.x / 32] = up_to;
  if (threadIdx.x % 32 == 0) atomicAdd(&before_all, before);
  __syncthreads();
  int slot = before_all + up_to - own;
  for (int w = 0; w < static_cast<int>(threadIdx.x / 32); ++w) slot += own_of[w];
  if (threadIdx.x == 0) work.first_slot[expert] = slot;
  if (threadIdx.x == kThreads - 1 && expert == work.num_experts - 1) {
    work.first_slot[work.num_experts] = slot + own;
  }
  for (int i = begin; i < end; ++i) {
    if (work.chosen[i] != expert) continue;
    work.slot_token[slot] = i / work.experts_per_token;
    work.slot_row[slot] = i;
    work.slot_weight[slot] = work.weights[i];
    ++slot;
  }
}

void check_shape(const Router& work) {
  check(work.hidden % 8 == 0 && work.hidden <= kWidestRouter, "a row is too wide for the router");
  check(work.num_experts <= kMostRouterExperts && work.experts_per_token <= kMostExpertsPerToken,
        "more experts than the router was made for");
}

}  // namespace

void route(const Router& work, const Launch& how) {
  check_shape(work);
  const auto shared = static_cast<std::size_t>(kTogether * work.hidden) * sizeof(float);
  const auto kernel = route_kernel;
  cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)));
  const std::int64_t groups = (work.num_tokens + kTogether - 1) / kTogether;
  launch(kernel,
         {.grid = dim3(static_cast<unsigned>(std::min<std::int64_t>(groups, work.num_sms))),
          .block = dim3(kThreads),
          .shared_bytes = shared},
         how, work);
}

void deal(const Deal& work, const Launch& how) {
  launch(deal_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_experts)), .block = dim3(kThreads)}, how,
         work);
}

void route_and_deal(const Router& work, const Deal& dealt, std::int32_t* finished,
                    const Launch& how) {
  check_shape(work);
  check(work.num_tokens <= kMostDealtTokens, "too many tokens to deal in one launch");
  launch(route_and_deal_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_tokens)),
          .block = dim3(kOneThreads),
          .shared_bytes = static_cast<std::size_t>(work.hidden) * sizeof(float)},
         how, work, dealt, finished);
}

}  // namespace gauntlet::kernels::cuda
