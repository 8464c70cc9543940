// Bulk copies of eight rows at a time, a row per warp, with one barrier for all of them; two such
// groups are in flight.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "catalog/ch10/transaction_barriers/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"

namespace gauntlet::ch10::transaction_barriers::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kStages = 2;
constexpr int kRowBytes = kColumns * sizeof(float);
static_assert(kColumns % 128 == 0, "four words per lane and turn");

struct Ring {
  alignas(128) float rows[kStages][kWarps][kColumns];
  std::uint64_t full[kStages];  // barriers: all rows of a stage have arrived
};

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

/// The same in all lanes.
__device__ __forceinline__ float sum_row(const float* row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0;
#pragma unroll
  for (int i = 4 * lane; i < kColumns; i += 128) {
    const float4 x = *reinterpret_cast<const float4*>(row + i);
    sum += (x.x + x.y) + (x.z + x.w);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  return sum;
}

__global__ void __launch_bounds__(kThreads) sum_rows(Params p) {
  extern __shared__ __align__(128) unsigned char ring_bytes[];
  auto& ring = *reinterpret_cast<Ring*>(ring_bytes);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (threadIdx.x == 0) {
    for (std::uint64_t& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();

  // Row `warp` of the block's turn `turn`.
  const auto row_of = [&](int turn, int of_warp) {
    return (std::int64_t{turn} * gridDim.x + blockIdx.x) * kWarps + of_warp;
  };
  const auto start = [&](int turn) {
    const std::int64_t first = row_of(turn, 0);
    if (threadIdx.x > 0 || first >= p.rows) return;
    const int rows = static_cast<int>(min(std::int64_t{kWarps}, p.rows - first));
    std::uint64_t& full = ring.full[turn % kStages];
    ptx::mbarrier_arrive_expect_tx(full, rows * kRowBytes);
    for (int row = 0; row < rows; ++row) {
      ptx::bulk_load(ring.rows[turn % kStages][row], p.in + (first + row) * kColumns, kRowBytes,
                     full);
    }
  };
  for (int turn = 0; turn < kStages; ++turn) start(turn);

  for (int turn = 0; row_of(turn, 0) < p.rows; ++turn) {
    wait_for(ring.full[turn % kStages], turn / kStages % 2);
    const std::int64_t row = row_of(turn, warp);
    if (row < p.rows) {
      const float sum = sum_row(ring.rows[turn % kStages][warp]);
      if (lane == 0) p.out[row] = sum;
    }
    __syncthreads();  // all warps have read their rows
    start(turn + kStages);
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  cuda_check(cudaFuncSetAttribute(sum_rows, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  const auto blocks =
      static_cast<unsigned>(std::min<std::int64_t>(cuda.num_sms, (p.rows + kWarps - 1) / kWarps));
  return [p, blocks, stream = cuda.stream] {
    sum_rows<<<blocks, kThreads, sizeof(Ring), stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::transaction_barriers::cuda
