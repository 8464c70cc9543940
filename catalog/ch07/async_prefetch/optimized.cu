// The same lanes; each thread copies its part of the rows kAhead steps ahead to shared memory with
// cp.async, and has the index of the step after those at hand.
#include <cuda_runtime.h>

#include "catalog/ch07/async_prefetch/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/cp_async.cuh"

namespace gauntlet::ch07::async_prefetch::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = kWidth / 4;  // of 16 bytes, per row
constexpr int kRowsPerBlock = kThreads / kLanes;
constexpr int kAhead = 3;
constexpr int kStages = kAhead + 1;
static_assert(kLanes == 4, "the reduction below takes two steps");

__device__ float sum_over_lanes(float4 row, float4 weight) {
  float sum = row.x * weight.x + row.y * weight.y + row.z * weight.z + row.w * weight.w;
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum + __shfl_xor_sync(~0u, sum, 2);
}

__global__ void __launch_bounds__(kThreads) sum_rows(Params p) {
  __shared__ float4 stages[kStages][kThreads];
  const auto* table = reinterpret_cast<const float4*>(p.table);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const float4 weight = reinterpret_cast<const float4*>(p.weight)[lane];
  const std::int64_t step = std::int64_t{gridDim.x} * kRowsPerBlock;
  std::int64_t row =
      std::int64_t{blockIdx.x} * kRowsPerBlock + static_cast<int>(threadIdx.x) / kLanes;

  const auto index_of = [&](std::int64_t i) { return i < p.lookups ? p.index[i] : 0; };
  // A group per step even past the end, so that the wait below counts steps.
  const auto prefetch = [&](int stage, std::int64_t i, std::int32_t index) {
    if (i < p.lookups) {
      ptx::cp_async_16(&stages[stage][threadIdx.x], table + std::int64_t{index} * kLanes + lane);
    }
    ptx::cp_async_commit_group();
  };

  for (int ahead = 0; ahead < kAhead; ++ahead) {
    prefetch(ahead, row + ahead * step, index_of(row + ahead * step));
  }
  std::int32_t next_index = index_of(row + kAhead * step);
  int stage = 0;
  // The bound is the same for all threads of the block, as the shuffles need.
  for (std::int64_t first = std::int64_t{blockIdx.x} * kRowsPerBlock; first < p.lookups;
       first += step, row += step) {
    prefetch((stage + kAhead) % kStages, row + kAhead * step, next_index);
    next_index = index_of(row + (kAhead + 1) * step);
    ptx::cp_async_wait_group<kAhead>();
    // Only the thread that copied a slot reads it: no barrier.
    const float sum = sum_over_lanes(stages[stage][threadIdx.x], weight);
    if (lane == 0 && row < p.lookups) p.out[row] = sum;
    stage = (stage + 1) % kStages;
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  int blocks_per_sm = 0;
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, sum_rows, kThreads, 0));
  return [p, blocks = cuda.num_sms * blocks_per_sm, stream = cuda.stream] {
    sum_rows<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::async_prefetch::cuda
