// A block per token: its warps share the experts. Dealing is a stable sort by expert: a warp finds
// an expert's picks by ballots, 32 at a time.
#include <cuda_bf16.h>

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/router.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFF;

__device__ __forceinline__ float2 as_floats(std::uint32_t pair) {
  return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pair));
}

/// The row's norm into shared memory as float and out as bf16.
__device__ void normalise(const Router& work, std::int64_t token, float* row, float* partial) {
  const auto* x = reinterpret_cast<const float4*>(work.x + token * work.hidden);
  const auto* weight = reinterpret_cast<const float4*>(work.norm_weight);
  auto* kept = reinterpret_cast<float4*>(row);
  const int fours = static_cast<int>(work.hidden / 4);
  float squares = 0;
  for (int i = threadIdx.x; i < fours; i += kThreads) {
    const float4 v = x[i];
    kept[i] = v;
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  const float sum = block_sum<kThreads>(squares, partial);
  const float scale = rsqrtf(sum / static_cast<float>(work.hidden) + work.epsilon);
  auto* out = reinterpret_cast<uint2*>(work.normed + token * work.normed_stride);
  for (int i = threadIdx.x; i < fours; i += kThreads) {
    float4 v = kept[i];
    const float4 w = weight[i];
    v.x *= scale * w.x, v.y *= scale * w.y, v.z *= scale * w.z, v.w *= scale * w.w;
    kept[i] = v;
    const __nv_bfloat162 low = __floats2bfloat162_rn(v.x, v.y);
    const __nv_bfloat162 high = __floats2bfloat162_rn(v.z, v.w);
    out[i] = {*reinterpret_cast<const std::uint32_t*>(&low),
              *reinterpret_cast<const std::uint32_t*>(&high)};
  }
}

__device__ float dot(const Router& work, int expert, const float* row) {
  const int lane = threadIdx.x % 32;
  const auto* weight = reinterpret_cast<const uint4*>(work.weight + expert * work.hidden);
  const auto* x = reinterpret_cast<const float4*>(row);
  float sum = 0;
#pragma unroll 4
  for (int i = lane; i < work.hidden / 8; i += 32) {
    const uint4 w = __ldg(weight + i);
    const float4 a = x[2 * i], b = x[2 * i + 1];
    const float2 w0 = as_floats(w.x), w1 = as_floats(w.y), w2 = as_floats(w.z), w3 = as_floats(w.w);
    sum += w0.x * a.x + w0.y * a.y + w1.x * a.z + w1.y * a.w + w2.x * b.x + w2.y * b.y +
           w3.x * b.z + w3.y * b.w;
  }
  return warp_sum(sum);
}

/// One warp takes the largest again and again; the lower expert wins a tie.
__device__ void choose(const Router& work, std::int64_t token, const float* logits) {
  constexpr int kPerLane = kMostRouterExperts / 32;
  const int lane = threadIdx.x;
  float mine[kPerLane];
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int e = lane + 32 * k;
    mine[k] = e < work.num_experts ? logits[e] : -INFINITY;
  }
  float best[kMostExpertsPerToken];
  int expert[kMostExpertsPerToken];
#pragma unroll
  for (int r = 0; r < kMostExpertsPerToken; ++r) {
    if (r >= work.experts_per_token) break;
    float top = -INFINITY;
    int at = kMostRouterExperts;
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (mine[k] > top) top = mine[k], at = lane + 32 * k;
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
      const float other = __shfl_xor_sync(kAll, top, offset);
      const int other_at = __shfl_xor_sync(kAll, at, offset);
      if (other > top || (other == top && other_at < at)) top = other, at = other_at;
    }
    // Logits that are all NaN leave no largest: any expert will do, the row is lost.
    if (at == kMostRouterExperts) at = r;
    best[r] = top;
    expert[r] = at;
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (at == lane + 32 * k) mine[k] = -INFINITY;
    }
  }
  float sum = 0;
#pragma unroll
  for (int r = 0; r < kMostExpertsPerToken; ++r) {
    if (r < work.experts_per_token) sum += __expf(best[r] - best[0]);
  }
  const bool real = work.real_tokens == nullptr || token < *work.real_tokens;
#pragma unroll
  for (int r = 0; r < kMostExpertsPerToken; ++r) {
    if (r < work.experts_per_token && lane == r) {
      work.chosen[token * work.experts_per_token + r] = real ? expert[r] : -1;
      work.weights[token * work.experts_per_token + r] = __expf(best[r] - best[0]) / sum;
    }
  }
}

__device__ void route_token(const Router& work, float* row) {
  __shared__ float partial[kWarps];
  __shared__ float logits[kMostRouterExperts];
  const std::int64_t token = blockIdx.x;
  normalise(work, token, row, partial);
  __syncthreads();
  for (int e = threadIdx.x / 32; e < work.num_experts; e += kWarps) {
    const float logit = dot(work, e, row);
    if (threadIdx.x % 32 == 0) logits[e] = logit + work.bias[e];
  }
  __syncthreads();
  if (threadIdx.x < 32) choose(work, token, logits);
}

/// One warp: where `expert` begins, and its picks in their order.
__device__ void deal_expert(const Deal& work, int expert) {
  const int lane = threadIdx.x % 32;
  const int picks = static_cast<int>(work.num_tokens) * work.experts_per_token;
  int before = 0, own = 0;
  for (int i = lane; i < picks; i += 32) {
    const int e = work.chosen[i];
    before += e >= 0 && e < expert ? 1 : 0;
    own += e == expert ? 1 : 0;
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    before += __shfl_xor_sync(kAll, before, offset);
    own += __shfl_xor_sync(kAll, own, offset);
  }
  if (lane == 0) {
    work.first_slot[expert] = before;
    if (expert == work.num_experts - 1) work.first_slot[expert + 1] = before + own;
  }
  int slot = before;
  for (int first = 0; first < picks && own > 0; first += 32) {
    const int i = first + lane;
    const bool hit = i < picks && work.chosen[i] == expert;
    const unsigned hits = __ballot_sync(kAll, hit);
    if (hit) {
      const int at = slot + __popc(hits & ((1u << lane) - 1));
      work.slot_token[at] = i / work.experts_per_token;
      work.slot_row[at] = i;
      work.slot_weight[at] = work.weights[i];
    }
    slot += __popc(hits);
  }
}

__global__ void __launch_bounds__(kThreads, 2) route_kernel(const Router work) {
  extern __shared__ __align__(16) float row[];
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  route_token(work, row);
}

__global__ void __launch_bounds__(kThreads)
    route_and_deal_kernel(const Router work, const Deal dealt, std::int32_t* finished) {
  extern __shared__ __align__(16) float row[];
  __shared__ bool last;
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  route_token(work, row);
  if (threadIdx.x < 32) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(finished, 1) == static_cast<int>(gridDim.x) - 1;
    if (last) *finished = 0;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  for (int e = threadIdx.x / 32; e < dealt.num_experts; e += kWarps) deal_expert(dealt, e);
}

/// Many picks: a block per expert. Threads count their own stretch, so order is kept.
__global__ void __launch_bounds__(kThreads) deal_kernel(const Deal work) {
  __shared__ int own_of[kThreads];
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
  own_of[threadIdx.x] = own;
  atomicAdd(&before_all, before);
  __syncthreads();
  int slot = before_all;
  for (int t = 0; t < static_cast<int>(threadIdx.x); ++t) slot += own_of[t];
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

Shape shape_of(const Router& work) {
  return {.grid = dim3(static_cast<unsigned>(work.num_tokens)),
          .block = dim3(kThreads),
          .shared_bytes = static_cast<std::size_t>(work.hidden) * sizeof(float)};
}

}  // namespace

void route(const Router& work, const Launch& how) {
  check_shape(work);
  launch(route_kernel, shape_of(work), how, work);
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
  launch(route_and_deal_kernel, shape_of(work), how, work, dealt, finished);
}

}  // namespace gauntlet::kernels::cuda
