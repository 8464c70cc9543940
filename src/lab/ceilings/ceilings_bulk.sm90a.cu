// How fast does device memory copy through Hopper's bulk copies? One thread of a block keeps a ring
// of loads and stores in flight; no data passes through registers.
#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "lab/ceilings/ceilings_cuda.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"

namespace gauntlet::lab::inline ceilings {
namespace {

constexpr int kStageBytes = 16 << 10;
constexpr int kStages = 6;
constexpr int kAhead = kStages / 2;  // loads in flight; the other stages drain into stores
constexpr int kBlocksPerSm = 2;
static_assert(kCudaGranule % kStageBytes == 0);

struct alignas(128) Ring {
  unsigned char stages[kStages][kStageBytes];
  std::uint64_t full[kStages];
};
static_assert(kBlocksPerSm * sizeof(Ring) <= 227 << 10);

__global__ void copy_bulk(const unsigned char* from, unsigned char* to, std::int64_t chunks) {
  extern __shared__ __align__(128) unsigned char raw[];
  Ring& ring = *reinterpret_cast<Ring*>(raw);
  if (threadIdx.x != 0) return;
  for (auto& barrier : ring.full) ptx::mbarrier_init(barrier, 1);
  ptx::fence_mbarrier_init();

  const std::int64_t first = blockIdx.x, step = gridDim.x;
  const std::int64_t mine = first < chunks ? (chunks - first + step - 1) / step : 0;
  const auto load = [&](std::int64_t turn) {
    const int stage = static_cast<int>(turn % kStages);
    ptx::mbarrier_arrive_expect_tx(ring.full[stage], kStageBytes);
    ptx::bulk_load(ring.stages[stage], from + (first + turn * step) * kStageBytes, kStageBytes,
                   ring.full[stage]);
  };
  const auto store = [&](std::int64_t turn) {
    const int stage = static_cast<int>(turn % kStages);
    const auto parity = static_cast<std::uint32_t>(turn / kStages % 2);
    while (!ptx::mbarrier_try_wait(ring.full[stage], parity)) {
    }
    ptx::bulk_store(to + (first + turn * step) * kStageBytes, ring.stages[stage], kStageBytes);
    ptx::bulk_commit_group();
  };

  for (std::int64_t turn = 0; turn < kAhead && turn < mine; ++turn) load(turn);
  for (std::int64_t turn = 0; turn < mine; ++turn) {
    store(turn);
    if (turn + kAhead < mine) {
      // The stage of the next load was stored kStages - kAhead turns ago, so as many stores are
      // newer.
      ptx::bulk_wait_group_read<kStages - kAhead>();
      load(turn + kAhead);
    }
  }
  ptx::bulk_wait_group_read<0>();
}

}  // namespace

std::vector<Probe> cuda_bulk_probes(const CudaSpace& space) {
  if (space.capability != 90) return {};
  cuda_check(cudaFuncSetAttribute(copy_bulk, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(sizeof(Ring))));
  const auto blocks = static_cast<unsigned>(space.num_sms * kBlocksPerSm);
  return {{"dram_copy", "bulk copies, " + std::to_string(kStages) + " stages of 16 KiB",
           2.0 * static_cast<double>(space.bytes), [=] {
             copy_bulk<<<blocks, 32, sizeof(Ring), space.stream>>>(
                 static_cast<const unsigned char*>(space.from),
                 static_cast<unsigned char*>(space.to), space.bytes / kStageBytes);
             cuda_check(cudaGetLastError());
           }}};
}

}  // namespace gauntlet::lab::inline ceilings
