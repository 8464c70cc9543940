// Four lanes per row, loaded on use: index, then row, then sum, one after the other in each thread.
#include <cuda_runtime.h>

#include "catalog/ch07/async_prefetch/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::async_prefetch::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = kWidth / 4;  // of 16 bytes, per row
constexpr int kRowsPerBlock = kThreads / kLanes;
static_assert(kLanes == 4, "the reduction below takes two steps");

__device__ float sum_over_lanes(float4 row, float4 weight) {
  float sum = row.x * weight.x + row.y * weight.y + row.z * weight.z + row.w * weight.w;
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum + __shfl_xor_sync(~0u, sum, 2);
}

__global__ void __launch_bounds__(kThreads) sum_rows(Params p) {
  const auto* table = reinterpret_cast<const float4*>(p.table);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const float4 weight = reinterpret_cast<const float4*>(p.weight)[lane];
  const std::int64_t step = std::int64_t{gridDim.x} * kRowsPerBlock;
  std::int64_t row =
      std::int64_t{blockIdx.x} * kRowsPerBlock + static_cast<int>(threadIdx.x) / kLanes;
  // The bound is the same for all threads of the block, as the shuffles need.
  for (std::int64_t first = std::int64_t{blockIdx.x} * kRowsPerBlock; first < p.lookups;
       first += step, row += step) {
    float4 entry{};
    if (row < p.lookups) entry = table[std::int64_t{p.index[row]} * kLanes + lane];
    const float sum = sum_over_lanes(entry, weight);
    if (lane == 0 && row < p.lookups) p.out[row] = sum;
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  int blocks_per_sm = 0;
  cuda_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, sum_rows, kThreads, 0));
  return [p, blocks = cuda.num_sms * blocks_per_sm, stream = cuda.stream] {
    sum_rows<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::async_prefetch::cuda
