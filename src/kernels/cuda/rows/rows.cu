// One block per row, four numbers per thread and load.
#include <algorithm>

#include "kernels/cuda/bf16_pair.cuh"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/sampling/sample.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline rows {
namespace {

/// Many threads answer soonest; of many rows, small blocks fill the GPU better.
constexpr int kFewRowsThreads = 768;
constexpr int kManyRowsThreads = 256;
constexpr std::int64_t kFewRows = 256;
constexpr int kCopyThreads = 128;

__device__ __forceinline__ float4 as_floats(uint2 four) {
  const float2 low = unpack_bf16(four.x), high = unpack_bf16(four.y);
  return {low.x, low.y, high.x, high.y};
}

__device__ __forceinline__ uint2 as_bf16(float4 four) {
  return {pack_bf16(four.x, four.y), pack_bf16(four.z, four.w)};
}

__global__ void __launch_bounds__(kCopyThreads) embed_kernel(const Embed work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t token = blockIdx.x;
  int id = work.ids[token];
  if (id < 0) id = max(0, work.late[-1 - id].token);
  const auto* from = reinterpret_cast<const uint2*>(work.table + id * work.hidden);
  auto* to = reinterpret_cast<float4*>(work.x + token * work.hidden);
  for (int i = threadIdx.x; i < work.hidden / 4; i += kCopyThreads) to[i] = as_floats(from[i]);
}

/// kFours: of a row, per thread.
template <int kNormThreads, int kFours>
__global__ void __launch_bounds__(kNormThreads, kFours > 4 ? 2 : 1024 / kNormThreads)
    norm_kernel(const Norm work) {
  __shared__ float partial[kNormThreads / 32];
  const int fours = static_cast<int>(work.hidden / 4);
  const std::int64_t out_row = blockIdx.x;
  const auto* weight = reinterpret_cast<const float4*>(work.weight);
  float4 weights[kFours];
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    const int i = threadIdx.x + k * kNormThreads;
    if (i < fours) weights[k] = __ldg(weight + i);
  }
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t row = work.rows != nullptr ? work.rows[out_row] : out_row;
  auto* x = reinterpret_cast<float4*>(work.x + row * work.hidden);
  const auto* experts =
      reinterpret_cast<const float4*>(work.experts + row * work.num_experts * work.hidden);
  float4 kept[kFours];
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    const int i = threadIdx.x + k * kNormThreads;
    if (i >= fours) break;
    kept[k] = x[i];
    if (work.experts != nullptr) {
      for (int e = 0; e < work.num_experts; ++e) {
        const float4 add = experts[e * fours + i];
        kept[k].x += add.x, kept[k].y += add.y, kept[k].z += add.z, kept[k].w += add.w;
      }
    }
    squares += kept[k].x * kept[k].x + kept[k].y * kept[k].y + kept[k].z * kept[k].z +
               kept[k].w * kept[k].w;
  }
  const float sum = block_sum<kNormThreads>(squares, partial);
  const float scale = 1.0f / sqrtf(sum / static_cast<float>(work.hidden) + work.epsilon);
  auto* out = reinterpret_cast<uint2*>(work.out + out_row * work.out_stride);
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    const int i = threadIdx.x + k * kNormThreads;
    if (i >= fours) break;
    if (work.experts != nullptr && work.rows == nullptr) x[i] = kept[k];
    if (work.sums != nullptr) reinterpret_cast<float4*>(work.sums)[out_row * fours + i] = kept[k];
    const float4 w = weights[k];
    const float4 normed = {kept[k].x * scale * w.x, kept[k].y * scale * w.y,
                           kept[k].z * scale * w.z, kept[k].w * scale * w.w};
    out[i] = as_bf16(normed);
    if (work.unrounded != nullptr) {
      reinterpret_cast<float4*>(work.unrounded)[out_row * fours + i] = normed;
    }
  }
}

__global__ void __launch_bounds__(kCopyThreads) gather_kernel(const Gather work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int pieces = static_cast<int>(work.stride / 8);
  for (std::int64_t row = blockIdx.x; row < *work.num_rows; row += gridDim.x) {
    const auto* from = reinterpret_cast<const uint4*>(work.x + work.rows[row] * work.stride);
    auto* to = reinterpret_cast<uint4*>(work.out + row * work.stride);
    for (int i = threadIdx.x; i < pieces; i += kCopyThreads) to[i] = from[i];
  }
}

}  // namespace

void embed(const Embed& work, const Launch& how) {
  launch(embed_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_tokens)), .block = dim3(kCopyThreads)}, how,
         work);
}

void norm(const Norm& work, const Launch& how) {
  check(work.hidden % 4 == 0 && work.hidden <= kWidestNorm, "a row is too wide for the norm");
  const auto run = [&](auto kernel, int threads) {
    launch(kernel,
           {.grid = dim3(static_cast<unsigned>(work.num_tokens)),
            .block = dim3(static_cast<unsigned>(threads))},
           how, work);
  };
  if (work.num_tokens <= kFewRows && work.hidden <= 4 * kFewRowsThreads) {
    run(norm_kernel<kFewRowsThreads, 1>, kFewRowsThreads);
  } else if (work.hidden <= 12 * kManyRowsThreads) {
    run(norm_kernel<kManyRowsThreads, 3>, kManyRowsThreads);
  } else {
    run(norm_kernel<kManyRowsThreads, 8>, kManyRowsThreads);
  }
}

void gather(const Gather& work, const Launch& how) {
  constexpr std::int64_t kMostBlocks = 16384;
  launch(gather_kernel,
         {.grid = dim3(static_cast<unsigned>(std::min(work.most_rows, kMostBlocks))),
          .block = dim3(kCopyThreads)},
         how, work);
}

}  // namespace gauntlet::kernels::cuda::inline rows
