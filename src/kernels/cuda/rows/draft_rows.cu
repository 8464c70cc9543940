// Each kernel reads its rows once, 16 bytes per thread and load.
#include "core/check.h"
#include "kernels/cuda/bf16_pair.cuh"
#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rows/draft_rows.h"
#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/sampling/sample.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline rows {
namespace {

constexpr int kDraftThreads = 256;
constexpr int kJoinThreads = 512;
constexpr int kJoinFours = static_cast<int>(kWidestNorm) / 4 / kJoinThreads;  // of a thread

__device__ __forceinline__ float silu_times(float gate, float up) {
  return gate / (1.0f + expf(-gate)) * up;
}

__global__ void __launch_bounds__(kDraftThreads) silu_product_kernel(const SiluProduct work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int fours = static_cast<int>(work.width / 4);
  const int i = static_cast<int>(blockIdx.x) * kDraftThreads + static_cast<int>(threadIdx.x);
  if (i >= fours) return;
  const std::int64_t row = blockIdx.y;
  const auto* gates = reinterpret_cast<const float4*>(work.gate_up + row * 2 * work.width);
  const float4 gate = gates[i], up = gates[fours + i];
  reinterpret_cast<uint2*>(work.out + row * work.out_stride)[i] = {
      pack_bf16(silu_times(gate.x, up.x), silu_times(gate.y, up.y)),
      pack_bf16(silu_times(gate.z, up.z), silu_times(gate.w, up.w))};
}

/// A block for each row and half.
__global__ void __launch_bounds__(kJoinThreads) join_inputs_kernel(const JoinInputs work) {
  __shared__ float partial[kJoinThreads / 32];
  const int fours = static_cast<int>(work.hidden / 4);
  const std::int64_t row = blockIdx.x;
  const bool is_feature = blockIdx.y == 1;
  const auto* weight =
      reinterpret_cast<const float4*>(is_feature ? work.feature_weight : work.embedding_weight);
  float4 weights[kJoinFours];
#pragma unroll
  for (int k = 0; k < kJoinFours; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kJoinThreads;
    if (i < fours) weights[k] = __ldg(weight + i);
  }
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  int id = 0;
  if (!is_feature) {
    id = work.ids[row];
    if (id < 0) id = max(0, work.late[-1 - id].token);
  }
  float4 kept[kJoinFours];
  float squares = 0;
#pragma unroll
  for (int k = 0; k < kJoinFours; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kJoinThreads;
    if (i >= fours) break;
    if (is_feature) {
      kept[k] = reinterpret_cast<const float4*>(work.features + row * work.hidden)[i];
    } else {
      const uint2 four = reinterpret_cast<const uint2*>(work.table + id * work.hidden)[i];
      const float2 low = unpack_bf16(four.x), high = unpack_bf16(four.y);
      kept[k] = {low.x, low.y, high.x, high.y};
    }
    squares += kept[k].x * kept[k].x + kept[k].y * kept[k].y + kept[k].z * kept[k].z +
               kept[k].w * kept[k].w;
  }
  const float sum = block_sum<kJoinThreads>(squares, partial);
  const float scale = 1.0f / sqrtf(sum / static_cast<float>(work.hidden) + work.epsilon);
  auto* out = reinterpret_cast<uint2*>(work.out + row * work.out_stride) + blockIdx.y * fours;
#pragma unroll
  for (int k = 0; k < kJoinFours; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kJoinThreads;
    if (i >= fours) break;
    const float4 w = weights[k];
    const float4 normed = {kept[k].x * scale * w.x, kept[k].y * scale * w.y,
                           kept[k].z * scale * w.z, kept[k].w * scale * w.w};
    out[i] = {pack_bf16(normed.x, normed.y), pack_bf16(normed.z, normed.w)};
    if (is_feature && work.unrounded != nullptr) {
      reinterpret_cast<float4*>(work.unrounded)[row * fours + i] = normed;
    }
  }
}

__global__ void __launch_bounds__(kDraftThreads) join_residuals_kernel(const JoinResiduals work) {
  __shared__ float partial[kDraftThreads / 32];
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const JoinResiduals::Row row = work.rows[blockIdx.x];
  const int fours = static_cast<int>(work.hidden / 4);
  const int all = work.boundaries * fours;
  const auto four_of = [&](int i) {
    const int boundary = i / fours;
    const auto* from = reinterpret_cast<const float4*>(
        work.residuals + (boundary * work.tokens + row.from) * work.hidden);
    return from[i - boundary * fours];
  };
  float scale = 1;
  if (work.weight != nullptr) {
    float squares = 0;
    for (int i = static_cast<int>(threadIdx.x); i < all; i += kDraftThreads) {
      const float4 x = four_of(i);
      squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
    }
    const float sum = block_sum<kDraftThreads>(squares, partial);
    scale = 1.0f / sqrtf(sum / static_cast<float>(4 * all) + work.epsilon);
  }
  auto* out = reinterpret_cast<uint2*>(work.out + row.to * work.out_stride);
  for (int i = static_cast<int>(threadIdx.x); i < all; i += kDraftThreads) {
    float4 x = four_of(i);
    if (work.weight != nullptr) {
      const float4 w = reinterpret_cast<const float4*>(work.weight)[i];
      x = {x.x * scale * w.x, x.y * scale * w.y, x.z * scale * w.z, x.w * scale * w.w};
    }
    out[i] = {pack_bf16(x.x, x.y), pack_bf16(x.z, x.w)};
  }
}

__global__ void __launch_bounds__(kDraftThreads) take_kept_kernel(const TakeKept work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t row = blockIdx.x;
  const std::int32_t slot = work.slots[row];
  if (slot < 0) return;
  const int eights = static_cast<int>(work.stride / 8);
  const auto* from = reinterpret_cast<const uint4*>(work.kept + slot * work.stride);
  auto* to = reinterpret_cast<uint4*>(work.out + row * work.stride);
  for (int i = static_cast<int>(threadIdx.x); i < eights; i += kDraftThreads) to[i] = from[i];
}

__global__ void __launch_bounds__(kDraftThreads) name_guesses_kernel(const NameGuesses work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kDraftThreads + threadIdx.x;
  if (i >= work.num_guesses) return;
  const std::int32_t id = work.target_ids[max(work.choices[i].token, 0)];
  if (work.late != nullptr) work.late[i].token = id;
  work.host[i] = id;
}

}  // namespace

void silu_product(const SiluProduct& work, const Launch& how) {
  check(work.width % 4 == 0 && work.out_stride % 4 == 0,
        "silu_product: rows are not aligned to four numbers");
  check(work.num_rows < 65536, "silu_product: more rows than a grid has");
  if (work.num_rows == 0) return;
  const std::int64_t blocks = (work.width / 4 + kDraftThreads - 1) / kDraftThreads;
  launch(silu_product_kernel,
         {.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(work.num_rows)),
          .block = dim3(kDraftThreads)},
         how, work);
}

void join_inputs(const JoinInputs& work, const Launch& how) {
  check(work.hidden % 4 == 0 && work.hidden <= kWidestNorm && work.out_stride % 4 == 0,
        "join_inputs: a row is too wide, or not aligned to four numbers");
  if (work.num_rows == 0) return;
  launch(join_inputs_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_rows), 2), .block = dim3(kJoinThreads)}, how,
         work);
}

void join_residuals(const JoinResiduals& work, const Launch& how) {
  check(work.hidden % 4 == 0 && work.out_stride % 4 == 0,
        "join_residuals: rows are not aligned to four numbers");
  check(work.num_rows <= JoinResiduals::kMostRows, "join_residuals: more rows than a launch names");
  if (work.num_rows == 0) return;
  launch(join_residuals_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_rows)), .block = dim3(kDraftThreads)}, how,
         work);
}

void take_kept(const TakeKept& work, const Launch& how) {
  check(work.stride % 8 == 0, "take_kept: rows are not 16 bytes aligned");
  if (work.num_rows == 0) return;
  launch(take_kept_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_rows)), .block = dim3(kDraftThreads)}, how,
         work);
}

void name_guesses(const NameGuesses& work, const Launch& how) {
  if (work.num_guesses == 0) return;
  const std::int64_t blocks = (work.num_guesses + kDraftThreads - 1) / kDraftThreads;
  launch(name_guesses_kernel,
         {.grid = dim3(static_cast<unsigned>(blocks)), .block = dim3(kDraftThreads)}, how, work);
}

}  // namespace gauntlet::kernels::cuda::inline rows
