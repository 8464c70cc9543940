// Each kernel reads its rows once, 16 bytes per thread and load.
#include "core/check.h"
#include "kernels/cuda/bf16_pair.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rows/draft_rows.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline rows {
namespace {

constexpr int kDraftThreads = 256;

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

__global__ void __launch_bounds__(kDraftThreads) take_rows_kernel(const TakeRows work) {
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int fours = static_cast<int>(work.hidden / 4);
  const std::int64_t row = blockIdx.x;
  const auto* from = reinterpret_cast<const float4*>(work.x + work.rows[row] * work.hidden);
  auto* to = reinterpret_cast<float4*>(work.out + row * work.hidden);
  for (int i = static_cast<int>(threadIdx.x); i < fours; i += kDraftThreads) to[i] = from[i];
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

void take_rows(const TakeRows& work, const Launch& how) {
  check(work.hidden % 4 == 0, "take_rows: rows are not 16 bytes aligned");
  if (work.num_rows == 0) return;
  launch(take_rows_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_rows)), .block = dim3(kDraftThreads)}, how,
         work);
}

}  // namespace gauntlet::kernels::cuda::inline rows
