// Dispatch of many picks: a block per expert, its warps each a stretch of the picks, so that order
// is kept.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/routing/router.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline routing {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFF;

struct Counts {
  int before = 0;  // picks of lower experts
  int own = 0;
};

__device__ __forceinline__ Counts warp_sum(Counts counts) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    counts.before += __shfl_xor_sync(kAll, counts.before, offset);
    counts.own += __shfl_xor_sync(kAll, counts.own, offset);
  }
  return counts;
}

__global__ void __launch_bounds__(kThreads) dispatch_kernel(const Dispatch work) {
  __shared__ Counts of_warp[kWarps];
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const int expert = blockIdx.x;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int picks = static_cast<int>(work.num_tokens) * work.experts_per_token;
  const int stretch = (picks + kThreads - 1) / kThreads * 32;
  const int begin = warp * stretch, end = min(picks, begin + stretch);
  Counts counts;
#pragma unroll 8
  for (int i = begin + lane; i < end; i += 32) {
    const int e = work.chosen[i];
    counts.before += e >= 0 && e < expert ? 1 : 0;
    counts.own += e == expert ? 1 : 0;
  }
  counts = warp_sum(counts);
  if (lane == 0) of_warp[warp] = counts;
  __syncthreads();
  Counts all = of_warp[lane];
  const int own = all.own;
  if (lane >= warp) all.own = 0;
  all = warp_sum(all);
  int slot = all.before + all.own;
  if (warp == kWarps - 1 && lane == kWarps - 1) {
    if (expert == work.num_experts - 1) work.first_slot[expert + 1] = slot + own;
  }
  if (threadIdx.x == 0) work.first_slot[expert] = slot;
#pragma unroll 4
  for (int first = begin; first < end; first += 32) {
    const int i = first + lane;
    const bool hit = i < end && work.chosen[i] == expert;
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

static_assert(kWarps == 32, "a warp adds up what the warps have counted");

}  // namespace

void dispatch(const Dispatch& work, const Launch& how) {
  launch(dispatch_kernel,
         {.grid = dim3(static_cast<unsigned>(work.num_experts)), .block = dim3(kThreads)}, how,
         work);
}

}  // namespace gauntlet::kernels::cuda::inline routing
