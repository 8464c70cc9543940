// Each kernel reads its rows once, 16 bytes per thread and load.
#include <algorithm>

#include "core/check.h"
#include "kernels/cuda/attention/rope_kv.cuh"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/routing/choose_experts.cuh"
#include "kernels/cuda/rows/unfused.h"
#include "kernels/cuda/swiglu.cuh"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline rows {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kHeadsPerBlock = kThreads / kHeadLanes;
constexpr std::int64_t kMostBlocks = 16384;

__global__ void __launch_bounds__(kThreads) add_residual_kernel(const AddResidual work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= work.num_tokens * work.hidden / 4) return;
  float4 sum = reinterpret_cast<const float4*>(work.x)[i];
  const float4 add = reinterpret_cast<const float4*>(work.y)[i];
  sum.x += add.x, sum.y += add.y, sum.z += add.z, sum.w += add.w;
  reinterpret_cast<float4*>(work.x)[i] = sum;
}

/// One block per token, one warp per expert.
__global__ void __launch_bounds__(kThreads) router_logits_kernel(const RouterLogits work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int fours = static_cast<int>(work.hidden / 4), lane = threadIdx.x % 32;
  const std::int64_t token = blockIdx.x;
  const auto* x = reinterpret_cast<const float4*>(work.x + token * work.hidden);
  for (int expert = threadIdx.x / 32; expert < work.num_experts; expert += kWarps) {
    const auto* weight = reinterpret_cast<const uint2*>(work.weight + expert * work.hidden);
    float sum = 0;
    for (int i = lane; i < fours; i += 32) {
      const uint2 w = weight[i];
      const float2 low = unpack_bf16(w.x), high = unpack_bf16(w.y);
      const float4 v = x[i];
      sum += v.x * low.x + v.y * low.y + v.z * high.x + v.w * high.y;
    }
    sum = warp_sum(sum);
    if (lane == 0) work.logits[token * work.num_experts + expert] = sum + work.bias[expert];
  }
}

__global__ void __launch_bounds__(kThreads) choose_kernel(const ChooseExperts work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t token = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (token < work.num_tokens) choose(work, token, work.logits + token * work.logits_stride);
}

__global__ void __launch_bounds__(kThreads) swiglu_kernel(const Swiglu work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t rows = work.num_rows != nullptr ? *work.num_rows : work.most_rows;
  const int fours = static_cast<int>(work.width / 4);
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto* gates = reinterpret_cast<const float4*>(work.gate_up + row * work.gate_up_stride);
    const float4* ups = gates + fours;
    auto* out = reinterpret_cast<uint2*>(work.out + row * work.out_stride);
    for (int i = threadIdx.x; i < fours; i += kThreads) {
      const float4 gate = gates[i], up = ups[i];
      out[i] = {pack_bf16(clamped_swiglu(gate.x, up.x, work.limit),
                          clamped_swiglu(gate.y, up.y, work.limit)),
                pack_bf16(clamped_swiglu(gate.z, up.z, work.limit),
                          clamped_swiglu(gate.w, up.w, work.limit))};
    }
  }
}

/// Where `token` stands among the ascending tokens of slots [begin, end), which hold it.
__device__ __forceinline__ int find_slot(const std::int32_t* slot_token, int begin, int end,
                                         int token) {
  while (end - begin > 1) {
    const int middle = (begin + end) / 2;
    (slot_token[middle] <= token ? begin : end) = middle;
  }
  return begin;
}

/// One block per token; a rank's slot is found by one thread.
__global__ void __launch_bounds__(kThreads) combine_kernel(const WeightedCombine work) {
  __shared__ int slots[kMostExpertsPerToken];
  __shared__ float weights[kMostExpertsPerToken];
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int token = blockIdx.x, rank = threadIdx.x, ranks = work.experts_per_token;
  if (rank < ranks) {
    const std::int64_t pick = std::int64_t{token} * ranks + rank;
    const int expert = work.chosen[pick];
    weights[rank] = work.weights[pick];
    const bool made =
        expert >= work.first_expert && (work.end_expert == 0 || expert < work.end_expert);
    slots[rank] = !made ? -1
                        : find_slot(work.slot_token, work.first_slot[expert],
                                    work.first_slot[expert + 1], token);
  }
  __syncthreads();
  const int fours = static_cast<int>(work.hidden / 4);
  auto* x = reinterpret_cast<float4*>(work.x) + std::int64_t{token} * fours;
  for (int i = threadIdx.x; i < fours; i += kThreads) {
    float4 sum = x[i];
    for (int r = 0; r < ranks; ++r) {
      if (slots[r] < 0) continue;
      const float4 y = reinterpret_cast<const float4*>(work.y)[std::int64_t{slots[r]} * fours + i];
      const float w = weights[r];
      sum.x += w * y.x, sum.y += w * y.y, sum.z += w * y.z, sum.w += w * y.w;
    }
    x[i] = sum;
  }
}

/// Grids of heads: tokens by groups of kHeadsPerBlock.
__device__ __forceinline__ int head_of_thread() {
  return static_cast<int>(blockIdx.y * kHeadsPerBlock + threadIdx.x / kHeadLanes);
}

__global__ void __launch_bounds__(kThreads) rope_kernel(const Rope work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int token = blockIdx.x, head = head_of_thread(), lane = threadIdx.x % kHeadLanes;
  if (head >= work.num_heads + work.num_kv_heads) return;
  float* row = work.qkv + token * work.qkv_stride + std::int64_t{head} * kHeadDim;
  const std::int64_t position = place_of(work.batch, token).position;
  const Quads x = rotate(load_quads(row, lane), work.rope + position * kHalfHead + 4 * lane);
  if (head < work.num_heads) {
    store_bf16(work.q + (std::int64_t{token} * work.num_heads + head) * kHeadDim, lane, x);
  } else {
    reinterpret_cast<float4*>(row)[lane] = x.low;
    reinterpret_cast<float4*>(row)[lane + kHeadLanes] = x.high;
  }
}

__global__ void __launch_bounds__(kThreads) store_kv_kernel(const StoreKv work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int token = blockIdx.x, head = head_of_thread(), lane = threadIdx.x % kHeadLanes;
  if (head >= 2 * work.cache.num_kv_heads) return;
  const float* row =
      work.qkv + token * work.qkv_stride + std::int64_t{work.num_heads + head} * kHeadDim;
  store_row(work.cache, work.batch, place_of(work.batch, token), head, lane, load_quads(row, lane));
}

unsigned blocks_for(std::int64_t count, int per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

Shape over_heads(int num_tokens, int heads) {
  return {.grid = dim3(static_cast<unsigned>(num_tokens), blocks_for(heads, kHeadsPerBlock)),
          .block = dim3(kThreads)};
}

}  // namespace

void add_residual(const AddResidual& work, const Launch& how) {
  check(work.hidden % 4 == 0, "add_residual: rows are not 16 bytes aligned");
  if (work.num_tokens == 0) return;
  launch(add_residual_kernel,
         {.grid = dim3(blocks_for(work.num_tokens * work.hidden / 4, kThreads)),
          .block = dim3(kThreads)},
         how, work);
}

void router_logits(const RouterLogits& work, const Launch& how) {
  check(work.hidden % 4 == 0, "router_logits: rows are not 16 bytes aligned");
  if (work.num_tokens == 0) return;
  launch(router_logits_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_tokens)), .block = dim3(kThreads)}, how,
         work);
}

void choose_experts(const ChooseExperts& work, const Launch& how) {
  check(work.num_experts <= kMostRouterExperts && work.experts_per_token <= kMostExpertsPerToken,
        "more experts than the router was made for");
  if (work.num_tokens == 0) return;
  launch(choose_kernel,
         {.grid = dim3(blocks_for(work.num_tokens, kWarps)), .block = dim3(kThreads)}, how, work);
}

void swiglu(const Swiglu& work, const Launch& how) {
  check(work.width % 4 == 0 && work.gate_up_stride % 4 == 0 && work.out_stride % 4 == 0,
        "swiglu: rows are not aligned to four numbers");
  if (work.most_rows == 0) return;
  launch(swiglu_kernel,
         {.grid = dim3(static_cast<unsigned>(std::min(work.most_rows, kMostBlocks))),
          .block = dim3(kThreads)},
         how, work);
}

void weighted_combine(const WeightedCombine& work, const Launch& how) {
  check(work.hidden % 4 == 0, "weighted_combine: rows are not 16 bytes aligned");
  check(work.experts_per_token <= kMostExpertsPerToken,
        "weighted_combine: too many experts per token");
  if (work.num_tokens == 0) return;
  launch(combine_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_tokens)), .block = dim3(kThreads)}, how,
         work);
}

void rope(const Rope& work, const Launch& how) {
  check(work.qkv_stride % 4 == 0, "rope: rows of q, k, v are not 16 bytes aligned");
  if (work.batch.num_tokens == 0) return;
  launch(rope_kernel, over_heads(work.batch.num_tokens, work.num_heads + work.num_kv_heads), how,
         work);
}

void store_kv(const StoreKv& work, const Launch& how) {
  check(work.qkv_stride % 4 == 0, "store_kv: rows of q, k, v are not 16 bytes aligned");
  if (work.batch.num_tokens == 0) return;
  launch(store_kv_kernel, over_heads(work.batch.num_tokens, 2 * work.cache.num_kv_heads), how,
         work);
}

}  // namespace gauntlet::kernels::cuda::inline rows
