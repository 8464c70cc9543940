// A cluster of blocks reads a row once for its largest logit and the sum of exponentials. Rows that
// are drawn go on from there; what they read again lies in L1.
#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sampling/cluster_row.cuh"
#include "kernels/cuda/sampling/draw.cuh"
#include "kernels/cuda/sampling/sample.h"
#include "ptx/exp2.cuh"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::kernels::cuda::inline sampling {
namespace {

/// Quads that a thread loads before it looks at the first: half of those it has of a row.
constexpr int kFirstBatch = 8;

enum class Rows { greedy, any };

/// A logit and its id; of equal ones the lowest id.
struct Best {
  float top = -INFINITY;
  std::int32_t id = INT32_MAX;

  __device__ __forceinline__ bool before(const Best& other) const {
    return top > other.top || (top == other.top && id < other.id);
  }
  /// Ids come in rising order.
  __device__ __forceinline__ void see(float logit, int at) {
    if (logit > top) {
      top = logit;
      id = at;
    }
  }
};

/// What one pass over some logits of a row finds.
struct Summary {
  Best best;      // of all
  float sum = 0;  // of exponentials relative to it
  Best permitted;
  float floor = -INFINITY;  // the least of the largest permitted logits of warps
};

struct SummaryShared {
  Summary warps[kRowWarps];
  Exchanged<Summary> blocks;
  Summary row;
};

__device__ __forceinline__ float exponential(float x) { return ptx::exp2_approx(x * kLog2E); }

__device__ __forceinline__ Summary join(const Summary& a, const Summary& b) {
  Summary both;
  both.best = a.best.before(b.best) ? a.best : b.best;
  const auto scaled = [&](const Summary& one) {
    return one.best.top == both.best.top ? one.sum
                                         : one.sum * exponential(one.best.top - both.best.top);
  };
  both.sum = scaled(a) + scaled(b);
  both.permitted = a.permitted.before(b.permitted) ? a.permitted : b.permitted;
  both.floor = fminf(a.floor, b.floor);
  return both;
}

__device__ __forceinline__ Summary of_lane(const Summary& own, int lane) {
  const auto word = [&](auto value) { return __shfl_sync(0xFFFFFFFF, value, lane); };
  return {.best = {.top = word(own.best.top), .id = word(own.best.id)},
          .sum = word(own.sum),
          .permitted = {.top = word(own.permitted.top), .id = word(own.permitted.id)},
          .floor = word(own.floor)};
}

/// Joined over the first lanes in a fixed order; lane 0 has the result.
template <int kLanes>
__device__ __forceinline__ Summary join_lanes(Summary own, int lane) {
#pragma unroll 1  // in line, joins would be a third of the greedy kernel's code
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    own = join(own, of_lane(own, (lane + offset) % 32));
  }
  return own;
}

/// Of this thread's quads of the row.
template <Rows kRows>
__device__ __forceinline__ Summary summary_of(const Row& row) {
  Summary own;
  const int from = row.begin + static_cast<int>(threadIdx.x);
  row.batches<kFirstBatch>(
      from, row.end, kRowThreads, [&](const float4(&batch)[kFirstBatch], int quad) {
        const float before = own.best.top;
#pragma unroll
        for (int b = 0; b < kFirstBatch; ++b) {
          const int id = row.first_id(quad + b * kRowThreads);
          own.best.see(batch[b].x, id);
          own.best.see(batch[b].y, id + 1);
          own.best.see(batch[b].z, id + 2);
          own.best.see(batch[b].w, id + 3);
        }
        const float top = own.best.top;
        if (top == -INFINITY) return;
        if (top != before) own.sum *= exponential(before - top);
#pragma unroll
        for (int b = 0; b < kFirstBatch; ++b) {
          own.sum += exponential(batch[b].x - top) + exponential(batch[b].y - top) +
                     (exponential(batch[b].z - top) + exponential(batch[b].w - top));
        }
      });
  own.permitted = own.best;
  if (kRows == Rows::greedy || row.allowed == nullptr) return own;
  own.permitted = {};
  row.each(from, row.end, kRowThreads, [&](float logit, int id) { own.permitted.see(logit, id); });
  return own;
}

/// Every thread of the cluster gets the row's.
template <Rows kRows>
__device__ Summary summarise(const Row& row, SummaryShared& shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Summary own = join_lanes<32>(summary_of<kRows>(row), lane);
  own.floor = own.permitted.top;
  if (lane == 0) shared.warps[warp] = own;
  __syncthreads();
  if (warp == 0) own = of_lane(join_lanes<kRowWarps>(shared.warps[lane % kRowWarps], lane), 0);
  wait_for_cluster();
  int turn = 0;
  const Summary* blocks = exchange(shared.blocks, turn, own);
  if (warp == 0) {
    own = join_lanes<kRowBlocks>(blocks[lane % kRowBlocks], lane);
    if (lane == 0) shared.row = own;
  }
  __syncthreads();
  return shared.row;
}

template <Rows kRows>
__global__ void GAUNTLET_CLUSTER_KERNEL __launch_bounds__(kRowThreads, 2)
    sample_kernel(const Sample work) {
  __shared__ SummaryShared summary_shared;
  if (blockIdx.x >= kRowBlocks) return;
  announce_block();
  ptx::grid_dependency_wait();
  ptx::grid_dependency_launch();
  const std::int64_t index = blockIdx.y;
  const float* logits = work.logits + index * work.stride;
  const bool masked = kRows == Rows::any && work.allowed != nullptr;
  const Row row(logits, masked ? work.allowed + index * work.allowed_words : nullptr,
                static_cast<int>(work.vocab));
  const DrawParams how = kRows == Rows::any ? work.params[index] : DrawParams{};
  const Summary summary = summarise<kRows>(row, summary_shared);
  RowChoice choice;
  if (summary.permitted.top > -INFINITY) {
    choice.token = summary.permitted.id;
    if constexpr (kRows == Rows::any) {
      __shared__ DrawShared draw_shared;
      if (how.temperature > 0) {
        choice.token = Draw(row, draw_shared).token(how, summary.permitted.top, summary.floor);
      }
    }
  }
  if (blockIdx.x > 0 || threadIdx.x > 0) return;
  const float normaliser = summary.best.top + logf(summary.sum);
  if (choice.token >= 0) choice.log_probability = logits[choice.token] - normaliser;
  const std::int32_t target = work.targets != nullptr ? work.targets[index] : -1;
  if (target >= 0) choice.target_log_probability = logits[target] - normaliser;
  work.out[index] = choice;
}

template <Rows kRows>
void launch_rows(const Sample& work, const Launch& how) {
  check(work.vocab <= kMostVocab, "more logits to a row than a draw can weigh");
  check(reinterpret_cast<std::uintptr_t>(work.logits) % 16 == 0, "logits begin with 16 bytes");
  launch(sample_kernel<kRows>,
         {.grid = dim3(kClusterBlocks, static_cast<unsigned>(work.num_rows)),
          .block = dim3(kRowThreads)},
         how, work);
}

}  // namespace

void sample_greedy(const Sample& work, const Launch& how) { launch_rows<Rows::greedy>(work, how); }

void sample(const Sample& work, const Launch& how) { launch_rows<Rows::any>(work, how); }

}  // namespace gauntlet::kernels::cuda::inline sampling
